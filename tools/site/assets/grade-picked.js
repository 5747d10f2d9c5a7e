// Grade what is picked, put into order, or a shape: the rules of kvlab/course/picked.py and
// shape_answers.py.
(() => {
  const LETTERS = "ABCDEFGHIJ";

  function gradePick(place, options) {
    if (place < 0) return kvlab.unreadGrade({ reason: "", empty: true });
    const [right, why] = options[place];
    return right
      ? kvlab.grade("right", `Right. ${why}`)
      : kvlab.grade("wrong", `Not right. ${why}`, `option-${place + 1}`);
  }

  // `places` lists the shown steps as the reader ordered them, `order` which step each one is.
  function gradeOrder(places, order, whys) {
    const at = places.findIndex((place, position) => order[place] !== position);
    if (at < 0) return kvlab.grade("right", "Right.");
    const early = `step ${LETTERS[places[at]]} comes too early. ${whys[order[places[at]]]}`;
    const why = `Place ${at + 1} does not fit: ${early}`;
    return kvlab.grade("wrong", `Not right. ${why}`, `place-${at + 1}`);
  }

  function readShape(answer) {
    const unread = (empty) => ({ reason: empty ? "" : "it is not a shape such as (2, 3)", empty });
    if ([...answer].length > kvlab.MAX_CHARS) return unread(false);
    const text = kvlab.stripped(kvlab.clean(answer), "()[] ");
    if (!kvlab.stripped(text, ". ")) return unread(true);
    if (!/^[0-9_]+(?:\s*[,x* ]\s*[0-9_]+)*,?$/.test(text)) return unread(false);
    return (text.replaceAll("_", "").match(/[0-9]+/g) || []).map((digits) =>
      Number(digits.slice(0, 12)),
    );
  }

  function gradeShape(answer, expected, axes, wrong) {
    const shape = readShape(answer),
      named = axes.join(", ");
    if (!Array.isArray(shape)) return kvlab.unreadGrade(shape);
    const same = (other) =>
      shape.length === other.length && shape.every((size, i) => size === other[i]);
    if (same(expected)) return kvlab.grade("right", `Right: (${named}).`);
    for (const [id, known, feedback] of wrong)
      if (same(known)) return kvlab.grade("wrong", feedback, id);
    if (shape.length !== expected.length)
      return kvlab.grade(
        "wrong",
        `Not right: ${expected.length} numbers are asked for, (${named}).`,
        "dimensions",
      );
    const sorted = (sizes) => [...sizes].sort((a, b) => a - b).join(" ");
    if (sorted(shape) === sorted(expected))
      return kvlab.grade(
        "wrong",
        `The numbers are right, their order is not: it is (${named}).`,
        "axes-swapped",
      );
    const off = axes.filter((_, i) => shape[i] !== expected[i]);
    return kvlab.grade("wrong", `Not right yet: look again at ${off.join(" and at ")}.`);
  }

  Object.assign(kvlab, { gradePick, gradeOrder, gradeShape });
})();
