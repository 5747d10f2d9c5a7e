"use strict";
const slides = [...document.querySelectorAll(".slide")];
const stage = document.getElementById("stage");
const noteBox = document.getElementById("notes");
let here = 0;
let other = null; // the speaker's window, or the room's, seen from the other one
const speaker = location.hash.startsWith("#speaker");

function fitAll() {
  document.body.classList.add("measure");
  for (const box of document.querySelectorAll(".fit")) {
    const inner = box.firstElementChild;
    if (!inner || inner.tagName.toLowerCase() === "svg") continue;
    inner.style.zoom = 1;
    const wide = box.clientWidth / inner.offsetWidth;
    const high = box.clientHeight / inner.offsetHeight;
    const most = inner.tagName === "PRE" ? 1 : 1.7;
    inner.style.zoom = Math.min(wide, high, most) * (most > 1 || Math.min(wide, high) < 1 ? 0.985 : 1);
  }
  document.body.classList.remove("measure");
}

function place() {
  const room = speaker ? 0.46 : document.body.classList.contains("noted") ? 0.66 : 1;
  const width = innerWidth, height = innerHeight * room;
  const scale = Math.min(width / 1280, height / 720);
  const left = (width - 1280 * scale) / 2, top = (height - 720 * scale) / 2;
  stage.style.transform = `translate(${left}px,${top}px) scale(${scale})`;
}

function notesOf(index) {
  const slide = slides[index];
  const after = slides[index + 1];
  const next = after ? `Next: ${after.getAttribute("aria-label")}` : "The last slide.";
  return `<p id="next">${slide.getAttribute("aria-label")}. ${next}</p>`
    + slide.querySelector(".notes").innerHTML;
}

function show(index, tell = true) {
  here = Math.max(0, Math.min(slides.length - 1, index));
  slides.forEach((slide, i) => slide.classList.toggle("here", i === here));
  document.getElementById("where").textContent = `${here + 1} / ${slides.length}`;
  noteBox.innerHTML = notesOf(here);
  noteBox.scrollTop = 0;
  if (!speaker) history.replaceState(null, "", `#${here + 1}`);
  if (tell && other) other.postMessage({kvlabSlide: here}, "*");
}

function turn(theme) {
  const dark = matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light";
  const now = document.documentElement.getAttribute("theme") || dark;
  document.documentElement.setAttribute("theme", theme || (now === "dark" ? "light" : "dark"));
}

function notes(on) {
  document.body.classList.toggle("noted", on);
  place();
}

function openSpeaker() {
  other = open(`${location.href.split("#")[0]}#speaker-${here + 1}`, "kvlab-speaker",
    "width=900,height=700");
}

const keys = {
  ArrowRight: () => show(here + 1), ArrowDown: () => show(here + 1), PageDown: () => show(here + 1),
  " ": () => show(here + 1), ArrowLeft: () => show(here - 1), ArrowUp: () => show(here - 1),
  PageUp: () => show(here - 1), Home: () => show(0), End: () => show(slides.length - 1),
  d: () => turn(), n: () => notes(!document.body.classList.contains("noted")), s: openSpeaker,
};
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.tagName === "BUTTON") return;
  const act = keys[event.key];
  if (act) { event.preventDefault(); act(); }
});
document.getElementById("back").onclick = () => show(here - 1);
document.getElementById("on").onclick = () => show(here + 1);
addEventListener("message", (event) => {
  if (typeof event.data !== "object" || !Number.isInteger(event.data.kvlabSlide)) return;
  other = event.source;
  show(event.data.kvlabSlide, false);
});
addEventListener("resize", place);
addEventListener("hashchange", () => show((parseInt(location.hash.slice(1)) || 1) - 1));
addEventListener("beforeprint", fitAll);

fitAll();
if (speaker) {
  other = opener;
  document.title = `Notes: ${document.title}`;
  document.body.classList.add("noted", "speaker");
}
place();
show((parseInt(location.hash.replace("#speaker-", "").replace("#", "")) || 1) - 1, false);
