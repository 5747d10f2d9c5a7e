// Units as people type them: a table made by the grader itself, "per second" and "per token".
(() => {
  const { fraction } = kvlab.exact;
  const OF = "token|layer|request|user|rank|gpu|card|step|head|position|sequence";
  const PER = new RegExp(`^(.*?)\\s*(?:/|\\bper )\\s*(${OF})s?$`, "i");
  const PER_SECOND = /^(.*?)\s*(?:\/|\bper )\s*(?:s|sec|second)$/;
  const AMOUNTS = ["bytes", "bits", "flop"];
  const { exact, anyCase, families } = kvlab.unitTable;

  const unit = ([family, factor, twin]) => ({
    family,
    factor: fraction(factor),
    twin: twin === null ? null : fraction(twin),
  });

  function listed(text) {
    const found = Object.hasOwn(exact, text) ? exact[text] : anyCase[text.toLowerCase()];
    return (found || []).map(unit);
  }

  // The meanings of a unit; none when it is not in the table.
  function readUnit(typed) {
    const text = typed.trim();
    if (text === "") return [{ family: "number", factor: fraction("1"), twin: null }];
    const found = listed(text);
    if (found.length) return found;
    const rate = PER_SECOND.exec(text);
    if (!rate) return [];
    const amounts = listed(rate[1]).filter((one) => AMOUNTS.includes(one.family));
    return amounts.map((one) => ({ ...one, family: `${one.family}/s` }));
  }

  function splitPer(text) {
    const found = PER.exec(text);
    return found ? [found[1].trim(), found[2].toLowerCase()] : [text, ""];
  }

  Object.assign(kvlab, { readUnit, splitPer, families });
})();
