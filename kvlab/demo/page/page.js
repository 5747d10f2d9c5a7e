// The page of a demo: it shows the state that Python keeps, and sends back what was changed.
import {drawControls} from "./controls.js";
import {fit, zoomBy} from "./fit.js";
import {listen} from "./keys.js";

const $ = id => document.getElementById(id), root = document.documentElement;
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
const BUSY_MS = 90, IDLE_MS = 2000, STILL_MS = 1000;
let state = null, sending = false, timer = 0;
const waiting = [];

// One request at a time; of several changes to one control only the newest is sent.
async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)};
  const answer = await fetch(path, {cache: "no-store", ...options});
  return answer.json();
}

async function send(path, body) {
  if (sending) { wait(path, body); return; }
  sending = true;
  document.body.dataset.asking = "yes";
  const late = setTimeout(() => {
    document.body.classList.add("working");
    $("event").hidden = false;
    $("event").textContent = "Working. A model takes a few seconds the first time.";
  }, 500);
  try {
    draw(await ask(path, body), path === "preset" || path === "stage");
  } catch { gone(); }
  clearTimeout(late);
  document.body.classList.remove("working");
  sending = false;
  delete document.body.dataset.asking;
  if (waiting.length) send(...waiting.shift());
}

function wait(path, body) {
  const last = waiting.at(-1), alike = last && last[0] === path && last[1].name === body.name;
  if (alike) waiting.pop();
  waiting.push([path, body]);
}

function gone() {
  $("error").textContent = "The demo has stopped: start it again in the terminal.";
  state = null;
}

function poll() {
  const wait = state && state.busy ? (still.matches ? STILL_MS : BUSY_MS) : IDLE_MS;
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (!sending) {
      try { draw(await ask(`state?since=${state ? state.version : 0}`)); } catch { gone(); }
    }
    poll();
  }, wait);
}

function draw(told, fresh = false) {
  if (told.same || (state && told.version < state.version)) return;
  if (told.version === undefined) { $("error").textContent = told.error || ""; return; }
  const before = state;
  state = told;
  document.title = `${told.title}: kvlab demo`;
  $("title").textContent = told.title;
  choices($("stages"), told.stages.length > 1 ? told.stages : [], told.stages[told.stage], at => send("stage", {place: at}));
  choices($("presets"), told.presets, told.preset, at => send("preset", {name: told.presets[at]}), true);
  drawControls(told.controls, (name, value) => send("change", {name, value}));
  if (!before || before.picture !== told.picture) $("picture").innerHTML = told.picture;
  numbers(told.numbers);
  for (const name of ["sentence", "event", "error"]) if ($(name).textContent !== told[name]) $(name).textContent = told[name];
  $("event").hidden = told.event === told.sentence;
  fit(fresh || !before || before.stage !== told.stage);
  Object.assign(document.body.dataset, {version: told.version, busy: told.busy});
  if (!told.busy) speak(told);
  if (!before || before.busy !== told.busy) poll();
}

function choices(box, names, chosen, act, counted = false) {
  if (box.dataset.names !== JSON.stringify(names)) {
    box.dataset.names = JSON.stringify(names);
    box.replaceChildren(...names.map((name, at) => {
      const button = document.createElement("button");
      button.type = "button";
      if (counted) {
        const place = Object.assign(document.createElement("span"), {className: "place", textContent: at + 1});
        place.setAttribute("aria-hidden", "true");
        button.append(place);
      }
      button.append(name);
      button.addEventListener("click", () => act(at));
      return button;
    }));
  }
  [...box.children].forEach((button, at) => button.setAttribute("aria-pressed", String(names[at] === chosen)));
}

function numbers(pairs) {
  const box = $("numbers"), rows = pairs.map(([name, value]) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("dt"), {textContent: name}),
      Object.assign(document.createElement("dd"), {textContent: value}));
    return row;
  });
  box.replaceChildren(...rows);
}

let speaking = 0;
function speak(told) {
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    const figures = told.numbers.map(pair => pair.join(" ")).join(", ");
    const words = [told.sentence, told.event, figures].filter(Boolean).join(" ");
    if ($("spoken").textContent !== words) $("spoken").textContent = words;
  }, 500);
}

function theme() {
  const dark = root.getAttribute("theme") === "dark" ||
    (!root.hasAttribute("theme") && window.matchMedia("(prefers-color-scheme: dark)").matches);
  root.setAttribute("theme", dark ? "light" : "dark");
}

function nextPreset(by) {
  const at = state ? state.presets.indexOf(state.preset) : -1;
  const next = at < 0 ? (by > 0 ? 0 : state.presets.length - 1) : at + by;
  if (state && state.presets[next]) send("preset", {name: state.presets[next]});
}

const actions = {
  step: by => send("step", {by}), play: () => send("play", {}), nextPreset,
  preset: at => state && state.presets[at] && send("preset", {name: state.presets[at]}),
  reveal: () => state && state.controls.some(c => c.name === "reveal") && send("change", {name: "reveal", value: null}),
  larger: () => zoomBy(0.1), smaller: () => zoomBy(-0.1), usual: () => zoomBy(0), theme,
  full: () => document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen().catch(() => {}),
  controls: () => {
    const bare = document.body.classList.toggle("bare");
    document.querySelector('[data-do="controls"]').setAttribute("aria-expanded", String(!bare));
    fit(true);
  },
  help: () => $("help").showModal(), close: () => $("help").close(),
};

listen(actions);
for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => actions[button.dataset.do]());
$("controls").addEventListener("submit", event => event.preventDefault());
window.addEventListener("resize", () => fit(true));
$("event").textContent = "Getting ready. A model takes a few seconds.";
send("state");
