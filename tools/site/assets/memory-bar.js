// The memory bar: one card to scale, with weights, caches, what is left and a guess as a ghost.
(() => {
  const { fixed, text, rect, line, sheet } = kvlab.memoryPieces;
  const data = kvlab.memoryData;
  const GB = 1e9,
    GIB = 2 ** 30,
    WIDTH = 960,
    LEFT = 36,
    RIGHT = 914,
    HEIGHT = 46;
  const gb = (bytes) => `${fixed(Number(bytes) / GB, 1)} GB`;
  const many = (count) => count.toLocaleString("en-US");
  const wide = (words, mono) => words.length * (mono ? 7.3 : 7.2);
  const GUESS = { fill: "none", class: "ink", "stroke-width": 1.5, "stroke-dasharray": "3 3" };

  // What lies in the memory, in its order from the left.
  function partsOf(state, sums) {
    const caches = Number(sums.caches),
      free = Number(sums.left - sums.caches),
      more = Number(sums.fit) - state.users;
    const parts = [
      { name: "weights", bytes: Number(sums.weights), colour: data.colours.weights },
      {
        name: `${state.users} x ${many(state.context)} tokens`,
        bytes: caches,
        colour: data.colours.value,
        detail: `${gb(caches)} = ${fixed(caches / GIB, 1)} GiB`,
      },
    ];
    if (free > 0) {
      parts.push({ name: more > 0 ? `room for ${many(more)} more` : "free", bytes: free });
    }
    const overhead = Math.round(state.overhead * GB);
    if (overhead) parts.push({ name: "overhead", bytes: overhead, hatched: true });
    return parts.map((part) => ({ detail: gb(part.bytes), ...part }));
  }

  function look({ colour, hatched }) {
    if (hatched) return { fill: "url(#memory-hatch)", stroke: "#808080" };
    return colour ? { fill: colour[0] } : { fill: "#808080", "fill-opacity": "0.15" };
  }

  // One part of the bar; what does not fit in it goes to the words above.
  function drawPart(x, y, pixels, part, above) {
    const drawn = Math.max(pixels - 2, 1),
      middle = x + drawn / 2,
      on = { anchor: "middle", ink: part.colour && part.colour[1] };
    let made = rect(x, y, drawn, HEIGHT, look(part));
    if (part.hatched || wide(part.name) >= drawn - 8) {
      above.push([middle, `${part.name} ${part.detail}`]);
      return made;
    }
    made += text(middle, y + 20, part.name, { ...on, kind: "b" });
    if (wide(part.detail, true) >= drawn - 8) {
      above.push([middle, part.detail]);
      return made;
    }
    return made + text(middle, y + 37, part.detail, { ...on, kind: "m" });
  }

  function drawAbove(above) {
    let edge = LEFT,
      made = "";
    for (const [middle, words] of above) {
      const start = Math.max(edge, Math.min(middle - wide(words) / 2, RIGHT - wide(words)));
      made += text(start, 82, words, { kind: "q" });
      edge = start + wide(words) + 14;
    }
    return made;
  }

  function drawGuess(start, pixels, words) {
    const named = `guess: ${words.slice(0, 24)}`,
      at = Math.min(start + pixels + 8, RIGHT - wide(named));
    return rect(start, 92, pixels, 14, GUESS) + text(at, 103, named);
  }

  function drawEnd(at, top, bottom) {
    const words = "the card ends here: it does not fit",
      middle = Math.min(at, RIGHT - wide(words) / 2);
    const strokes = line(at, top - 7, top) + line(at, bottom, bottom + 12);
    return strokes + text(middle, bottom + 26, words, { anchor: "middle" });
  }

  function drawAxis(end, scale, y) {
    const rough = end / GB / 5,
      power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    let made = "";
    for (let value = 0; value <= end / GB; value += step) {
      const at = LEFT + value * GB * scale,
        words = `${many(value)} GB`;
      made += line(at, y, y + 5, { "stroke-opacity": "0.22" });
      made += text(at, y + 19, words, { anchor: "middle", kind: "m q" });
    }
    return made;
  }

  function draw(state, sums) {
    const parts = partsOf(state, sums),
      used = parts.reduce((sum, part) => sum + part.bytes, 0),
      guess = guessed(state.guess),
      capacity = data.gpus[state.gpu];
    const end = Math.max(capacity, used, guess ? Number(sums.weights) + guess : 0),
      scale = (RIGHT - LEFT) / end,
      top = guess ? 112 : 92;
    const ranks = state.tp > 1 ? `one of ${state.tp} ranks` : "one card";
    const reading = `The bar is the memory of ${ranks}, to scale.`;
    const green = "Users and tokens move the green part alone.";
    let body = text(18, 31, "Where the memory goes", { size: 15, kind: "b" });
    body += text(18, 54, `${reading} ${green}`, { size: 13, kind: "q" });
    let x = LEFT,
      bottom = top + HEIGHT;
    const above = [];
    for (const part of parts) {
      body += drawPart(x, top, part.bytes * scale, part, above);
      x += part.bytes * scale;
    }
    body += drawAbove(above);
    const first = LEFT + Number(sums.weights) * scale;
    if (guess) body += drawGuess(first, guess * scale, state.guess);
    if (used > capacity) {
      body += drawEnd(LEFT + capacity * scale, top, bottom);
      bottom += 30;
    }
    body += drawAxis(end, scale, bottom + 4);
    const told = parts.map((part) => `${part.name} ${part.detail}`).join(", ");
    const over = used > capacity ? " It does not fit." : "";
    return sheet(WIDTH, bottom + 44, `Memory bar of ${gb(capacity)}: ${told}.${over}`, body);
  }

  // A guess such as "20 GiB" in bytes; a bare number counts GB; null if it can't be read.
  function guessed(words) {
    const typed = words.trim() ? kvlab.readTyped(words) : {};
    const units = typed.readings ? kvlab.readUnit(typed.unit || "GB") : [];
    const unit = units.find((one) => one.family === "bytes");
    if (!unit) return null;
    const value = kvlab.exact.times(typed.readings[0], unit.factor);
    const bytes = Number(value.n / value.d);
    return bytes > 0 ? Math.min(bytes, 1e15) : null;
  }

  kvlab.drawMemory = draw;
})();
