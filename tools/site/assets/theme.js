// The theme before anything is drawn: the system's, unless the reader chose one on this machine.
var kvlab = {
  // The browser may refuse to keep anything; the page works all the same.
  recall(key) {
    try {
      return localStorage.getItem("kvlab-" + key);
    } catch {
      return null;
    }
  },
  keep(key, value) {
    try {
      localStorage.setItem("kvlab-" + key, value);
    } catch {
      /* not kept */
    }
  },
  dark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },
  frames: {},
};
document.documentElement.classList.add("js-on");
const chosenTheme = kvlab.recall("theme");
if (chosenTheme === "light" || chosenTheme === "dark")
  document.documentElement.dataset.theme = chosenTheme;
