// The short way: hide the deep dives of a chapter. A link into one of them shows them again.
(() => {
  const button = document.querySelector(".js-core");
  const main = document.querySelector("main");
  if (!button || !main) return;
  let deep = false;
  for (const part of [...main.children]) {
    if (part.matches("h2")) deep = Boolean(part.nextElementSibling?.matches(".deep-dive"));
    if (part.matches(".turn")) deep = false;
    if (!deep) continue;
    part.classList.add("deep-part");
    if (part.id)
      document.querySelector(`.contents a[href="#${part.id}"]`)?.classList.add("deep-part");
  }

  function show(only) {
    document.body.classList.toggle("core-only", only);
    button.setAttribute("aria-pressed", String(only));
    kvlab.reachable();
  }

  function follow() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target || !target.closest(".deep-part") || !document.body.classList.contains("core-only"))
      return;
    show(false);
    target.scrollIntoView();
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    const only = button.getAttribute("aria-pressed") !== "true";
    kvlab.keep("core", only ? "yes" : "no");
    show(only);
  });
  addEventListener("hashchange", follow);
  show(kvlab.recall("core") === "yes");
  follow();
})();
