// A question on the page: read the answer, say what became of it, ask again with other numbers.
(() => {
  const SIGNS = { right: "\u2713 Right", wrong: "\u2717 Not yet", open: "\u25cb Not answered yet" };
  const OPEN = ["not answered yet", "not readable", "can be read in two ways"];

  // "Right. Because ..." is shown as a sign, a word and the rest: the word is not said twice.
  function show(box, grade) {
    const kind = grade.right ? "right" : OPEN.includes(grade.verdict) ? "open" : "wrong";
    const strong = document.createElement("strong");
    strong.textContent = SIGNS[kind];
    const rest = grade.feedback.replace(
      /^(Right[.:]|Not right( yet)?[.:]|Not answered yet[.:])\s*/,
      "",
    );
    box.className = `feedback ${kind}`;
    box.replaceChildren(strong, rest ? rest[0].toUpperCase() + rest.slice(1) : "");
  }

  function steps(list) {
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const row = button.closest("li"),
        up = button.classList.contains("js-up");
      const other = up ? row.previousElementSibling : row.nextElementSibling;
      if (!other) return;
      if (up) other.before(row);
      else other.after(row);
      button.focus();
    });
    return () => [...list.children].map((row) => Number(row.dataset.place));
  }

  function rubric(section, box) {
    const points = [...section.querySelectorAll(".rubric input")];
    section.addEventListener("change", () => {
      const made = points.filter((point) => point.checked).length;
      const right = points[0].checked && made >= points.length - 1;
      const scope =
        right || points[0].checked
          ? ""
          : " The first point is the scope: say it before any number.";
      box.className = `feedback ${right ? "right" : "open"}`;
      box.textContent = `${made} of ${points.length} points.${scope}`;
    });
  }

  function grader(data, section) {
    const entry = section.querySelector("input[type=text]"),
      list = section.querySelector(".steps");
    const order = list && steps(list);
    return (asking) => {
      if (asking.target) return kvlab.gradeNumber(entry.value, asking.target);
      if (asking.shape)
        return kvlab.gradeShape(entry.value, asking.shape, asking.axes, asking.wrong);
      if (asking.order) return kvlab.gradeOrder(order(), asking.order, asking.whys);
      const picked = [...section.querySelectorAll("input[type=radio]")].findIndex(
        (radio) => radio.checked,
      );
      return kvlab.gradePick(picked, asking.options);
    };
  }

  function again(section, data, box, turn) {
    const button = section.querySelector(".js-again");
    if (!button || data.askings.length < 2) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const asking = turn();
      section.querySelector(".js-text").innerHTML = asking.text;
      section.querySelector(".js-solution").innerHTML = asking.solution;
      section.querySelector("details").open = false;
      box.replaceChildren();
      const entry = section.querySelector("input[type=text]");
      entry.value = "";
      entry.focus();
    });
  }

  function question(section) {
    const data = JSON.parse(section.querySelector("script[type='application/json']").textContent);
    const box = section.querySelector(".feedback");
    if (data.kind === "open") {
      rubric(section, box);
      return;
    }
    const judge = grader(data, section);
    let at = 0;
    section.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const grade = judge(data.askings[at]);
      show(box, grade);
      section.dispatchEvent(
        new CustomEvent("kvlab-graded", {
          bubbles: true,
          detail: {
            id: section.dataset.id,
            right: grade.right,
            answered: !OPEN.includes(grade.verdict),
          },
        }),
      );
    });
    section.querySelector(".js-shows").addEventListener("toggle", (event) => {
      if (event.target.open)
        section.dispatchEvent(
          new CustomEvent("kvlab-shown", { bubbles: true, detail: { id: section.dataset.id } }),
        );
    });
    again(section, data, box, () => {
      at = (at + 1) % data.askings.length;
      return data.askings[at];
    });
  }

  document.querySelectorAll(".question").forEach(question);
})();
