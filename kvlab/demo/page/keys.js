// Keys for a room: they work wherever the focus is, but leave typing and native controls alone.

const TYPES = ["text", "number", "textarea"];

export function listen(actions) {
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.getElementById("help").open) return;
    const target = event.target, tag = target.tagName;
    const typing = tag === "TEXTAREA" || (tag === "INPUT" && TYPES.includes(target.type));
    if (typing) {
      // A guess that was typed is done: from here on the keys are the page's again.
      if (event.key === "Enter" && tag === "INPUT") target.blur();
      return;
    }
    const moves = tag === "SELECT" || (tag === "INPUT" && target.type === "range");
    const act = actionFor(event.key, actions, {moves, presses: tag === "BUTTON" || tag === "INPUT" || tag === "SELECT"});
    if (!act) return;
    event.preventDefault();
    act();
  });
  document.addEventListener("click", event => {
    // After the mouse the keys belong to the page: space plays, and does not press again.
    const button = event.target.closest("button");
    if (button && event.detail > 0 && !button.closest("dialog")) button.blur();
  });
}

function actionFor(key, actions, at) {
  if (key === "ArrowLeft" || key === "ArrowRight") {
    return at.moves ? null : () => actions.step(key === "ArrowRight" ? 1 : -1);
  }
  if (key === " ") return at.presses ? null : actions.play;
  if (/^[1-9]$/.test(key)) return () => actions.preset(Number(key) - 1);
  const named = {
    "+": actions.larger, "=": actions.larger, "-": actions.smaller, "0": actions.usual,
    "?": actions.help, f: actions.full, t: actions.theme, c: actions.controls, r: actions.reveal,
    PageDown: () => actions.nextPreset(1), PageUp: () => actions.nextPreset(-1),
  };
  return named[key.length === 1 ? key.toLowerCase() : key] || null;
}
