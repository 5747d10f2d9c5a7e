// The pieces of the memory bar as SVG, in the looks of kvlab/figures, and sizes in words.
(() => {
  const SCALE = [
    ["TiB", 2 ** 40, "TB", 1e12],
    ["GiB", 2 ** 30, "GB", 1e9],
    ["MiB", 2 ** 20, "MB", 1e6],
    ["KiB", 2 ** 10, "kB", 1e3],
  ];
  const fixed = (value, digits) =>
    value.toLocaleString("en-US", {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
  const escaped = (words) =>
    String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const short = (value) =>
    typeof value === "number" ? value.toFixed(2).replace(/\.?0+$/, "") : value;

  // A size for people: the binary unit first, the decimal one in brackets.
  function size(bytes) {
    const count = Number(bytes);
    const found = SCALE.find(([, binary]) => count >= binary);
    if (!found) return `${bytes} bytes`;
    const [name, binary, other, decimal] = found;
    return `${fixed(count / binary, 2)} ${name} (${fixed(count / decimal, 2)} ${other})`;
  }

  // An element; attributes without a value are left out, `content` is markup already.
  function element(name, attributes, content = "") {
    const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
    const written = given.map(([key, value]) => ` ${key}="${escaped(short(value))}"`).join("");
    return `<${name}${written}>${content}</${name}>`;
  }

  function text(x, y, words, { anchor, kind, size: px = 12, ink } = {}) {
    const style = ink && `fill:${ink}`;
    const attributes = { x, y, "font-size": px, "text-anchor": anchor, class: kind, style };
    return element("text", attributes, escaped(words));
  }

  const rect = (x, y, width, height, more) =>
    element("rect", { x, y, width, height, rx: Math.min(4, width / 2), ...more });
  const line = (x, y, to, more = { "stroke-width": 2 }) =>
    element("line", { x1: x, y1: y, x2: x, y2: to, class: "ink", ...more });

  // A sheet with a frame, as every picture of the course has one.
  function sheet(width, height, label, body) {
    const stroke = element("path", { d: "M0 0V6", stroke: "#808080", "stroke-width": 2.4 });
    const lines = { patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
    const hatch = element("pattern", { id: "memory-hatch", width: 6, height: 6, ...lines }, stroke);
    const box = { x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8 };
    const grey = { fill: "#808080", "fill-opacity": "0.055", stroke: "#808080" };
    const ground = element("rect", { ...box, class: "ground" });
    const frame = element("rect", { ...box, ...grey, "stroke-opacity": "0.6" });
    const own = { xmlns: "http://www.w3.org/2000/svg", class: "kvlab", role: "img" };
    const shape = { width, height, viewBox: `0 0 ${width} ${height}` };
    const inner = element("defs", {}, hatch) + ground + frame + body;
    return element("svg", { ...own, "aria-label": label, ...shape }, inner);
  }

  kvlab.memoryPieces = { fixed, size, text, rect, line, sheet };
})();
