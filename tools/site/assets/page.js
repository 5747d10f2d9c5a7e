// What every page has: the switch of the theme, copied code, chapters that were read, contents.
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];

  function themeSwitch() {
    const button = document.querySelector(".js-theme");
    const show = () => {
      const dark = kvlab.dark();
      button.textContent = dark ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to the ${dark ? "light" : "dark"} theme`);
      document.dispatchEvent(new Event("kvlab-theme"));
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      const wanted = kvlab.dark() ? "light" : "dark";
      document.documentElement.dataset.theme = wanted;
      kvlab.keep("theme", wanted);
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
  }

  // From a disk the clipboard may be closed to a page; then the text is selected and copied.
  async function copy(pre) {
    try {
      await navigator.clipboard.writeText(pre.innerText);
    } catch {
      const selection = getSelection();
      selection.selectAllChildren(pre);
      document.execCommand("copy");
      selection.removeAllRanges();
    }
  }

  function copyButtons() {
    for (const block of all(".code")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "copy";
      button.setAttribute("aria-label", "Copy this code");
      button.addEventListener("click", async () => {
        await copy(block.querySelector("pre"));
        button.textContent = "copied";
        setTimeout(() => {
          button.textContent = "copy";
        }, 1500);
      });
      block.append(button);
    }
  }

  // What is wider than its place scrolls inside itself; then the keyboard must reach it.
  function reachable() {
    for (const box of all(".wide, .code pre, .printed, .chart")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      if (wide) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
      if (!box.matches("pre")) continue;
      if (wide) box.setAttribute("role", "group");
      else box.removeAttribute("role");
    }
  }

  function chaptersRead() {
    const here = document.documentElement.querySelector("body").dataset.chapter;
    const read = new Set((kvlab.recall("read") || "").split(" "));
    for (const cell of all(".cells a")) {
      if (cell.dataset.number !== here && read.has(cell.dataset.number)) {
        cell.classList.add("read");
        cell.setAttribute("aria-label", `${cell.title}, opened before`);
      }
    }
    if (here) kvlab.keep("read", [...read.add(here)].sort().join(" ").trim());
  }

  function contents() {
    const box = document.querySelector(".contents details");
    if (!box) return;
    const narrow = matchMedia("(max-width: 75rem)");
    const fit = () => {
      box.open = !narrow.matches;
    };
    narrow.addEventListener("change", fit);
    fit();
    const links = new Map(all("a", box).map((a) => [a.hash.slice(1), a]));
    const heads = all("main h2[id]").filter((h) => links.has(h.id));
    const mark = () => {
      const above = heads.filter((h) => h.getBoundingClientRect().top < innerHeight / 3);
      for (const link of links.values()) link.removeAttribute("aria-current");
      const last = above[above.length - 1];
      if (last) links.get(last.id).setAttribute("aria-current", "true");
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  }

  themeSwitch();
  copyButtons();
  reachable();
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  chaptersRead();
  contents();
  kvlab.reachable = reachable;
})();
