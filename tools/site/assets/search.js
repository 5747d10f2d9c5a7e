// The search: every section that holds all the words, headings first. The text is one script,
// loaded when the search is opened, because a page from a disk may fetch nothing.
(() => {
  const dialog = document.getElementById("search");
  const field = dialog.querySelector("input");
  const told = dialog.querySelector(".told");
  const list = dialog.querySelector(".found");
  const MOST = 30,
    AROUND = 70;
  let loading = null;

  function texts() {
    loading ??= new Promise((done) => {
      const script = document.createElement("script");
      script.src = "assets/texts.js";
      script.onload = () =>
        done(
          kvlab.texts.map((row) => ({
            row,
            low: row[4].toLowerCase(),
            head: `${row[2]} ${row[3]}`.toLowerCase(),
          })),
        );
      script.onerror = () => done([]);
      document.head.append(script);
    });
    return loading;
  }

  // Each word must be there; in a heading it weighs most, at its start more than in its middle.
  function weight(section, words) {
    let sum = 0;
    for (const word of words) {
      const at = section.low.indexOf(word),
        inHead = section.head.includes(word);
      if (at < 0 && !inHead) return 0;
      const starts = at === 0 || (at > 0 && !/[\p{L}\p{N}]/u.test(section.low[at - 1]));
      const times = section.low.split(word).length - 1;
      sum += (inHead ? 20 : 0) + (starts ? 4 : 0) + Math.min(times, 6);
    }
    return sum;
  }

  function snippet(section, words) {
    const text = section.row[4];
    const places = words.map((word) => section.low.indexOf(word)).filter((at) => at >= 0);
    const start = Math.max(0, Math.min(...places, text.length) - AROUND);
    const cut = text.slice(start, start + 3 * AROUND);
    return (start ? "\u2026" : "") + cut + (start + cut.length < text.length ? "\u2026" : "");
  }

  function marked(node, text, words) {
    const low = text.toLowerCase();
    let at = 0;
    while (at < text.length) {
      const next = words
        .map((w) => [low.indexOf(w, at), w.length])
        .filter(([i]) => i >= 0)
        .sort((a, b) => a[0] - b[0])[0];
      if (!next) break;
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next[0], next[0] + next[1]);
      node.append(text.slice(at, next[0]), mark);
      at = next[0] + next[1];
    }
    node.append(text.slice(at));
  }

  function item(section, words) {
    const [page, anchor, title, heading] = section.row;
    const li = document.createElement("li"),
      link = document.createElement("a");
    const name = document.createElement("strong"),
      where = document.createElement("small"),
      cut = document.createElement("p");
    link.href = page + (anchor ? `#${anchor}` : "");
    link.addEventListener("click", () => dialog.close());
    marked(name, heading || title, words);
    where.textContent = heading ? title : "";
    marked(cut, snippet(section, words), words);
    link.append(name, where, cut);
    li.append(link);
    return li;
  }

  async function look() {
    const words = field.value
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word.length > 1 || /\d/.test(word));
    if (!words.length) {
      list.replaceChildren();
      told.textContent = "";
      return;
    }
    const every = await texts();
    const found = every.map((section) => [weight(section, words), section]).filter(([w]) => w > 0);
    found.sort((a, b) => b[0] - a[0]);
    const shown = found.slice(0, MOST).map(([, section]) => item(section, words));
    list.replaceChildren(...shown);
    const more = found.length > MOST ? `, the best ${MOST} shown` : "";
    told.textContent = found.length
      ? `${found.length} section${found.length > 1 ? "s" : ""}${more}`
      : "Nothing found.";
  }

  function step(by) {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement) + by;
    (at < 0 ? field : links[Math.min(at, links.length - 1)] || field).focus();
  }

  function open() {
    dialog.showModal();
    field.select();
    texts();
  }

  const button = document.querySelector(".js-search");
  button.hidden = false;
  button.addEventListener("click", open);
  dialog.querySelector(".js-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      step(1);
    }
    if (event.key === "ArrowUp") {
      event.preventDefault();
      step(-1);
    }
    if (event.key === "Escape") {
      event.preventDefault();
      dialog.close();
    } // a search field would only empty itself
    if (event.key === "Enter" && event.target === field) {
      const first = list.querySelector("a");
      if (first) first.click();
    }
  });
  field.addEventListener("input", look);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "/" && !typing && !dialog.open) {
      event.preventDefault();
      open();
    }
  });
})();
