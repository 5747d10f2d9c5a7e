// A claim: the reader's verdict first, then the recomputation opens beside it.
(() => {
  const OTHERWISE = "\u2717 The recomputation says otherwise.";
  for (const card of document.querySelectorAll(".claim")) {
    const buttons = [...card.querySelectorAll(".verdicts button")];
    card.addEventListener("click", (event) => {
      const button = event.target.closest(".verdicts button");
      if (!button) return;
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      const right = button.textContent === card.dataset.verdict;
      const said = right ? "\u2713 The recomputation says so too." : OTHERWISE;
      card.querySelector(".told").textContent = `You said: ${button.textContent}. ${said}`;
      card.querySelector("details").open = true;
    });
  }
})();
