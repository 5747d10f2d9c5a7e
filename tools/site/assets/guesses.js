// Guesses: kept in this browser alone, and set beside the value in words, as
// kvlab/course/predictions.py does.
(() => {
  const CLOSE = 1.1;

  const toNumber = (a) => {
    // A quotient of two whole numbers of any length, to about 15 digits.
    const shift = Math.max(0, a.d.toString().length - 1);
    const scaled = (a.n * 10n ** 18n) / a.d;
    return shift > 300 ? 0 : Number(scaled) / 1e18;
  };

  // Guess over value, or null when they cannot be compared.
  function ratio(text, value, unit) {
    const typed = kvlab.readTyped(text);
    const asked = kvlab.readUnit(kvlab.splitPer(unit)[0])[0] || kvlab.readUnit("")[0];
    if (!typed.readings || value.n === 0n) return null;
    const spelled = kvlab.splitPer(typed.unit)[0];
    let meant = kvlab.readUnit(spelled);
    if (!meant.length) meant = kvlab.readUnit(spelled.split(" ")[0]);
    let units = spelled ? meant.filter((one) => one.family === asked.family) : [asked];
    if (!units.length && asked.family === "number") units = [asked];
    if (!units.length) return null;
    const { times, over } = kvlab.exact;
    const wanted = times(value, asked.factor);
    const ratios = typed.readings
      .map((one) => toNumber(over(times(one, units[0].factor), wanted)))
      .filter((one) => one > 0);
    return ratios.length ? ratios.sort((a, b) => Math.max(a, 1 / a) - Math.max(b, 1 / b))[0] : null;
  }

  function inWords(found) {
    if (1 / CLOSE <= found && found <= CLOSE)
      return found === 1 ? "That is exact." : "That is close.";
    const factor = found > 1 ? found : 1 / found,
      side = found > 1 ? "high" : "low";
    if (factor < 1.5) return `That is a little too ${side}.`;
    const round = factor >= 10 || factor === Math.round(factor);
    const shown = round ? Math.round(factor).toLocaleString("en-US") : factor.toFixed(1);
    return `That is ${shown} times too ${side}.`;
  }

  // How far a guess is from a value as it is shown; "" where nobody can say.
  function howFar(guess, shown, unit = "") {
    const value = kvlab.readTyped(shown.split(" (")[0]);
    if (!value.readings) return "";
    const found = ratio(guess, value.readings[0], value.unit || unit);
    return found === null ? "" : inWords(found);
  }

  function notANumber(text) {
    const kept = text.split(/\s+/).filter(Boolean).join(" ");
    if (!kept || kvlab.readTyped(kept).readings) return "";
    const chars = [...kept],
      shown = chars.length <= 40 ? kept : `${chars.slice(0, 40).join("")}...`;
    return `A guess needs one number in digits, such as 3; "${shown}" could not be compared.`;
  }

  const withUnit = (typed, unit) => (/[\p{L}%]/u.test(typed) ? typed : `${typed} ${unit}`.trim());

  function reveal(key, typed, unit) {
    for (const card of document.querySelectorAll(`.reveal[data-key="${CSS.escape(key)}"]`)) {
      const place = card.querySelector(".js-guess"),
        far = card.querySelector(".js-far");
      place.textContent = typed ? withUnit(typed, unit) : "none made";
      place.classList.toggle("made", Boolean(typed));
      far.textContent = typed ? howFar(typed, card.dataset.value, unit) : "";
    }
  }

  for (const box of document.querySelectorAll(".guess")) {
    const { key, unit } = box.dataset;
    const entry = box.querySelector("input"),
      told = box.querySelector(".told");
    const commit = (typed) => {
      told.textContent = notANumber(typed);
      if (told.textContent) return;
      kvlab.keep(`guess-${key}`, typed);
      if (typed) told.textContent = "Committed. Read on: it stands beside the value.";
      reveal(key, typed, unit);
    };
    box.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      commit(entry.value.trim());
    });
    const before = kvlab.recall(`guess-${key}`);
    if (before) {
      entry.value = before;
      reveal(key, before, unit);
    }
  }
  Object.assign(kvlab, { howFar, notANumber });
})();
