// Read a number as people type it: the rules of kvlab/course/typed.py, line by line.
// A number is a fraction of two whole numbers, so that no digit is lost.
(() => {
  const MAX_CHARS = 120,
    MAX_EXPONENT = 60;
  const POWERS = {
    "\u00b9": "1",
    "\u00b2": "2",
    "\u00b3": "3",
    "\u2070": "0",
    "\u207b": "-",
    "\u207a": "+",
  };
  for (let i = 4; i <= 9; i++) POWERS[String.fromCharCode(0x2070 + i)] = String(i);
  const ALIKE = {};
  for (const c of "\u2010\u2011\u2012\u2013\u2014\u2212") ALIKE[c] = "-";
  Object.assign(ALIKE, {
    "\u066b": ".",
    "\u066c": ",",
    "\u066a": "%",
    "\u2019": "'",
    "\u02bc": "'",
    "\u2044": "/",
    "\u2215": "/",
    "\u03bc": "u",
    "\u00d7": "x",
    "\u00b7": "*",
    "\u22c5": "*",
    "\u2217": "*",
    "\u2248": "~",
    "\u2243": "~",
  });
  const SPACE = /[\s\x1c-\x1f\x85]+/;
  const LEAD = /^(?:about|approximately|approx\.?|roughly|around|circa|ca\.?|~|=)\s*/i;
  const POWER = "[x*]\\s*10\\s*(?:\\^|\\*\\*)\\s*([+-]?[0-9]{1,4})(?![0-9])";
  const EXPONENT = "[eE]([+-]?[0-9]{1,4})(?![0-9])";
  const DIGITS = "(x\\s*)?([+-]?)\\s*([.,]?[0-9][0-9 _',.]*)";
  const NUMBER = new RegExp(`^${DIGITS}(?:${EXPONENT}|${POWER})?(.*)$`);
  const PRICE = /^([+-]?)\s*(?:us\s?)?(?:\$|usd\b)\s*(?=[-+]?[.,]?[0-9])/i;
  const FRACTION = /^([+-]?)\s*([0-9]{1,9})\s*\/\s*([0-9]{1,9})$/;
  const TO_ONE = /^([0-9.,]{1,20})\s*:\s*1$/;
  const GROUPED = /^(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]?(?:,[0-9]{2})*,[0-9]{3})$/;
  const STYLES = [
    [",", "."],
    [".", ","],
    [" ", "."],
    [" ", ","],
    ["'", "."],
    ["'", ","],
  ];

  // A fraction from digits such as "-1.5e-3"; the lower number is above 0.
  function fraction(text) {
    const [, sign, whole, part = "", power = "0"] =
      /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text);
    let n = BigInt(whole + part || "0"),
      d = 10n ** BigInt(part.length);
    const e = Number(power);
    if (e > 0) n *= 10n ** BigInt(e);
    else d *= 10n ** BigInt(-e);
    return { n: sign === "-" ? -n : n, d };
  }
  const whole = (value) => ({ n: BigInt(value), d: 1n });
  const times = (a, b) => ({ n: a.n * b.n, d: a.d * b.d });
  const over = (a, b) =>
    b.n < 0n ? { n: -a.n * b.d, d: -a.d * b.n } : { n: a.n * b.d, d: a.d * b.n };
  const minus = (a, b) => ({ n: a.n * b.d - b.n * a.d, d: a.d * b.d });
  const size = (a) => ({ n: a.n < 0n ? -a.n : a.n, d: a.d });
  const compare = (a, b) => {
    const x = a.n * b.d - b.n * a.d;
    return x < 0n ? -1 : x > 0n ? 1 : 0;
  };

  // A digit of any script as 0 to 9: digits stand in runs of ten, so count back to the first.
  function digit(char) {
    if (!/\p{Nd}/u.test(char)) return char;
    const code = char.codePointAt(0);
    let first = code;
    while (code - first < 9 && /\p{Nd}/u.test(String.fromCodePoint(first - 1))) first--;
    return String(code - first);
  }

  function stripped(text, chars) {
    let from = 0,
      to = text.length;
    while (from < to && chars.includes(text[from])) from++;
    while (to > from && chars.includes(text[to - 1])) to--;
    return text.slice(from, to);
  }

  function clean(text) {
    text = text.replace(
      /[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+/g,
      (found) => "^" + [...found].map((c) => POWERS[c]).join(""),
    );
    const kept = [...text.normalize("NFKC")]
      .map((c) => ALIKE[c] ?? c)
      .filter((c) => !/\p{Cf}/u.test(c));
    const words = kept
      .map(digit)
      .join("")
      .split(SPACE)
      .filter((word) => word !== "");
    return stripped(words.join(" "), "\"'`");
  }

  function readAs(digits, group, mark) {
    const at = digits.indexOf(mark);
    let before = at < 0 ? digits : digits.slice(0, at);
    const part = at < 0 ? "" : digits.slice(at + 1);
    if (before.includes(group)) {
      if (group !== "," && before.includes(",")) return null;
      if (!GROUPED.test(before.replaceAll(group, ","))) return null;
      before = before.replaceAll(group, "");
    }
    if (!/^[0-9]+$/.test(before + part)) return null;
    return fraction(part ? `${before || 0}.${part}` : before);
  }

  function readings(digits) {
    const found = [];
    for (const [group, mark] of STYLES) {
      const value = readAs(digits.replaceAll("_", ""), group, mark);
      if (value && !found.some((other) => compare(other, value) === 0)) found.push(value);
    }
    return found;
  }

  const unread = (reason, empty = false) => ({ reason, empty });

  function readNumber(text) {
    const found = NUMBER.exec(text);
    if (!found) return unread("it does not start with a number");
    const [, before, sign, typed, e, ten, after] = found;
    const digits = typed.replace(/[ .,]+$/, "");
    let unit = after.trim();
    if (/[0-9]/.test(unit) && /[-+*/^()=,x]/.test(unit))
      return unread("it is a calculation; write the result as one number");
    const values = readings(digits);
    if (!values.length) return unread("its separators do not form one number");
    const exponent = Number(e || ten || 0);
    if (Math.abs(exponent) > MAX_EXPONENT) return unread("the number is out of range");
    const scale = fraction(`${sign === "-" ? "-" : ""}1e${exponent}`);
    if (before && !unit) unit = "x";
    return { readings: values.map((value) => times(value, scale)), unit, digits };
  }

  function readFraction(text) {
    let found = TO_ONE.exec(text);
    if (found) {
      const values = readings(found[1]);
      return values.length ? { readings: values, unit: "x", digits: found[1] } : null;
    }
    found = FRACTION.exec(text);
    if (!found) return null;
    if (Number(found[3]) === 0) return unread("it divides by zero");
    return {
      readings: [over(fraction(found[1] + found[2]), fraction(found[3]))],
      unit: "",
      digits: "",
    };
  }

  function readPrice(amount) {
    const typed = readNumber(amount);
    if (!typed.readings) return typed;
    const money = kvlab.readUnit(typed.unit)[0];
    if (typed.unit && money && money.family === "dollars" && compare(money.factor, whole(1)) === 0)
      return typed;
    return { ...typed, unit: `$ ${typed.unit}`.trim() };
  }

  // A number with its possible readings, the usual one first, or the reason why there is none.
  function readTyped(raw) {
    const length = [...raw].length;
    if (length > MAX_CHARS)
      return unread(
        `it has ${length.toLocaleString("en-US")} characters, and one number is asked for`,
      );
    let text = clean(raw);
    const low = text.toLowerCase();
    if (stripped(text, ". \u2026") === "") return unread("", true);
    if (["nan", "none", "null", "n/a", "?"].includes(low)) return unread("", true);
    if (["inf", "infinity", "\u221e"].includes(low.replace(/^[+-]+/, "")))
      return unread("the number is not finite");
    text = text.replace(LEAD, "");
    const price = PRICE.exec(text);
    if (price) return readPrice(price[1] + text.slice(price[0].length));
    return readFraction(text) || readNumber(text);
  }

  kvlab.exact = { fraction, whole, times, over, minus, size, compare };
  Object.assign(kvlab, { clean, stripped, readTyped, MAX_CHARS });
})();
