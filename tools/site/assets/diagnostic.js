// The diagnostic: the first readable answer counts, and a look at the answer counts as a no.
(() => {
  const rows = [...document.querySelectorAll(".advice tr[data-question]")];
  const total = document.querySelector(".js-total");

  function note(id, right) {
    const row = rows.find((one) => one.dataset.question === id);
    const cell = row && row.querySelector(".js-advice");
    if (!cell || cell.dataset.done) return;
    cell.dataset.done = "yes";
    cell.classList.toggle("read", !right);
    cell.textContent = right ? "skim" : "read";
    const left = rows.filter((one) => !one.querySelector(".js-advice").dataset.done).length;
    const read = rows.filter((one) => one.querySelector(".js-advice").textContent === "read");
    const minutes = read.reduce((sum, one) => sum + Number(one.lastElementChild.textContent), 0);
    total.textContent =
      `To read so far: ${minutes} minutes core` + (left ? `; ${left} to answer.` : ".");
  }

  document.addEventListener("kvlab-graded", (event) => {
    if (event.detail.answered) note(event.detail.id, event.detail.right);
  });
  document.addEventListener("kvlab-shown", (event) => note(event.detail.id, false));
})();
