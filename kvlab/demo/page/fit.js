// Type and picture sized to the window. On 1920 pixels type is 1.6 times that of a notebook; other
// windows keep its share of the width, for a projector shows both equally large.

const BASE = 13, USUAL = 1.6 * BASE / 1920, SMALLEST = 14;
const root = document.documentElement, $ = id => document.getElementById(id);
let zoom = 1, best = {key: "", scale: Infinity};

export function zoomBy(step) {
  zoom = step === 0 ? 1 : Math.min(2.5, Math.max(0.6, Math.round((zoom + step) * 10) / 10));
  fit();
}

const typeSize = () => Math.max(SMALLEST, USUAL * window.innerWidth);

export function fit(fresh = false) {
  const usual = typeSize(), rem = usual * zoom, stage = $("shown"), picture = $("picture");
  root.style.fontSize = `${rem}px`;
  const svg = picture.querySelector(":scope > svg");
  if (!svg) {
    stage.classList.add("below");
    for (const one of picture.children) if (one.style) one.style.zoom = rem / BASE;
    return;
  }
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const room = roomFor(stage), count = $("numbers").children.length;
  const left = room.width - (count ? 13.9 * rem : 0);
  const beside = scaleIn(left, room.height, width, height);
  const perRow = Math.max(1, Math.floor(room.width / (12.4 * rem)));
  const rows = Math.ceil(count / perRow) * 2.7 * rem;
  const below = scaleIn(room.width, room.height - rows, width, height);
  const floor = Math.min(room.width / width, 0.78 * usual / BASE);
  const under = count > 0 && (below >= beside || floor * width > left);
  stage.classList.toggle("below", under || !count);
  let scale = Math.max(floor, under ? below : beside);
  const key = [window.innerWidth, window.innerHeight, zoom, width, count, document.body.className].join();
  if (key === best.key && !fresh) scale = Math.min(scale, Math.max(floor, best.scale));
  best = {key, scale};
  const widest = (under ? room.width : left) / width;
  svg.style.width = `${Math.floor(width * Math.min(widest, scale * Math.max(1, zoom)))}px`;
  svg.style.height = "auto";
}

const scaleIn = (w, h, width, height) => Math.min(w / width, h / height);

function roomFor(stage) {
  const top = stage.getBoundingClientRect().top + window.scrollY;
  const foot = Math.max($("words").offsetHeight, 3.4 * typeSize());
  return {width: stage.clientWidth - 2, height: window.innerHeight - top - foot - 1.2 * typeSize()};
}
