// Draw plotly's figures in the theme of the page; the still picture stays where that fails.
(() => {
  const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const ground = () => getComputedStyle(document.documentElement).getPropertyValue("--bg").trim();
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const themed = () => ({
    "font.color": ink(),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    "hoverlabel.bgcolor": ground(),
    "hoverlabel.font.color": ink(),
    "hoverlabel.bordercolor": ink(),
  });

  async function draw(box) {
    const figure = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    const plot = box.querySelector(".plot");
    if (still.matches) figure.layout.transition = { duration: 0 };
    box.classList.add("drawn");
    try {
      await Plotly.newPlot(plot, figure.data, figure.layout, {
        responsive: true,
        displaylogo: false,
        displayModeBar: false,
      });
      await Plotly.relayout(plot, themed());
      document.addEventListener("kvlab-theme", () => Plotly.relayout(plot, themed()));
    } catch (error) {
      box.classList.remove("drawn");
      throw error;
    }
  }

  document.querySelectorAll(".chart").forEach(draw);
})();
