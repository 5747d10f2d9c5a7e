// Native controls for what Python describes; a change goes to `send(name, value)`.

const form = document.getElementById("controls");
let shape = "";

const make = (tag, values = {}, children = []) => {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...children);
  return made;
};

const shapeOf = controls => JSON.stringify(controls.map(
  c => [c.name, c.label, c.kind, c.kind === "select" ? c.options : 0]));

export function drawControls(controls, send) {
  const found = shapeOf(controls);
  if (found !== shape) rebuild(controls, send);
  shape = found;
  for (const one of controls) update(one);
}

function rebuild(controls, send) {
  const held = document.activeElement && document.activeElement.dataset.name;
  const fields = controls.filter(c => c.kind !== "button").map(c => field(c, send));
  const presses = controls.filter(c => c.kind === "button").map(c => {
    const button = make("button", {type: "button", textContent: c.label, title: c.hint});
    button.dataset.name = c.name;
    button.addEventListener("click", () => send(c.name, null));
    return button;
  });
  form.replaceChildren(...fields);
  if (presses.length) form.append(make("div", {className: "buttons"}, presses));
  document.body.classList.toggle("many", fields.length > 5);
  const again = held && form.querySelector(`[data-name="${CSS.escape(held)}"]`);
  if (again) again.focus();
}

function field(c, send) {
  const input = inputFor(c);
  input.id = `control-${c.name}`;
  input.dataset.name = c.name;
  const label = make("label", {htmlFor: input.id, textContent: c.label});
  if (c.kind === "checkbox") {
    input.addEventListener("change", () => send(c.name, input.checked));
    return make("div", {className: "field check"}, [input, label]);
  }
  const moved = c.kind === "range" ? "input" : "change";
  input.addEventListener(moved, () => send(c.name, read(c.kind, input)));
  const row = make("div", {className: "row"}, [input]);
  if (c.kind === "range") row.append(make("output", {htmlFor: input.id}));
  return make("div", {className: "field"}, [label, row]);
}

function inputFor(c) {
  if (c.kind === "select") {
    return make("select", {}, c.options.map(words => make("option", {textContent: words})));
  }
  if (c.kind === "text") {
    const input = make(c.long ? "textarea" : "input", {placeholder: c.hint, autocomplete: "off"});
    if (!c.long) input.type = "text";
    return input;
  }
  return make("input", {type: c.kind, autocomplete: "off"});
}

function read(kind, input) {
  if (kind === "select") return input.selectedIndex;
  return kind === "text" ? input.value : Number(input.value);
}

function update(c) {
  const input = form.querySelector(`[data-name="${CSS.escape(c.name)}"]`);
  if (!input) return;
  input.disabled = c.disabled;
  if (c.kind === "button") {
    if (input.textContent !== c.label) input.textContent = c.label;
    return;
  }
  for (const key of ["min", "max", "step"]) if (c[key] != null && c[key] !== "") input[key] = c[key];
  if (c.kind === "checkbox") input.checked = c.value;
  else if (c.kind === "select") input.selectedIndex = c.value ?? -1;
  else if (c.kind !== "text" || document.activeElement !== input) {
    const shown = c.value == null ? "" : String(c.value);
    if (input.value !== shown) input.value = shown;
  }
  if (c.kind === "range") {
    input.setAttribute("aria-valuetext", c.words);
    input.parentElement.querySelector("output").textContent = c.words;
  }
}
