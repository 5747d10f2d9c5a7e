// Grade one number: right, wrong, wrong in a known way, or not readable. The rules and the
// sentences are those of kvlab/course/grading.py and hints.py; a test compares them.
(() => {
  const { fraction, whole, times, over, minus, size, compare } = kvlab.exact;
  const SCALED = ["bytes", "bits", "bytes/s", "bits/s", "flop", "flop/s", "seconds"];
  const SIZES = [1000n, 1024n].flatMap((base) =>
    [1n, 2n, 3n, 4n].map((power) => ({ n: base ** power, d: 1n })),
  );
  const grade = (verdict, feedback, misconception = "") => ({
    verdict,
    feedback,
    misconception,
    right: verdict === "right",
  });

  function unreadGrade(unread) {
    if (!unread.empty)
      return grade(
        "not readable",
        `Not answered yet: this cannot be read, because ${unread.reason}.`,
      );
    const end = unread.reason.endsWith("?") ? "" : ".";
    return grade(
      "not answered yet",
      `Not answered yet${unread.reason ? `: ${unread.reason}${end}` : "."}`,
    );
  }

  // The target in its base unit.
  function scaleOf(target) {
    const factor = kvlab.readUnit(target.unit)[0].factor;
    const wantedOf = (value) => times(fraction(value), factor);
    return {
      matches(value, expected) {
        const wanted = wantedOf(expected);
        if (target.exact) return compare(value, wanted) === 0;
        return (
          compare(size(minus(value, wanted)), times(size(wanted), fraction(target.tolerance))) <= 0
        );
      },
      near(value, digits, step) {
        const wanted = wantedOf(target.value),
          off = size(minus(value, wanted));
        const within = (part) => compare(off, over(size(wanted), whole(part))) <= 0;
        if (target.exact) return compare(size(wanted), whole(1000)) >= 0 && within(200);
        const figures = digits.replace(/^[0., ]+/, "").replace(/[^0-9]/g, "").length;
        return figures === 2 && compare(off, over(step, whole(2))) <= 0 && within(20);
      },
    };
  }

  function unitsOf(text, target) {
    const asked = kvlab.readUnit(target.unit)[0];
    if (asked.family === "number") {
      const words = new Set(target.words.map((word) => word.toLowerCase()));
      for (const word of [...words]) words.add(word.replace(/s$/, ""));
      if (words.has(text.toLowerCase())) return kvlab.readUnit(target.unit === "%" ? "%" : "");
      const at = text.indexOf(" ");
      if (at >= 0 && words.has(text.slice(at + 1).toLowerCase()))
        return kvlab.readUnit(text.slice(0, at));
    }
    if (!text)
      return target.unit === "%"
        ? [asked, { family: "number", factor: whole(1), twin: null }]
        : [asked];
    return kvlab.readUnit(text);
  }

  function otherFamily(typed, asked) {
    const wanted = kvlab.families[asked];
    if (typed.startsWith("bits") && asked.startsWith("bytes"))
      return `A small b means bits, 8 to a byte; the question asks for ${wanted}.`;
    return `The unit says ${kvlab.families[typed]}; the question asks for ${wanted}.`;
  }

  function unknownUnit(text, asked) {
    const chars = [...text];
    const shown = chars.length <= 24 ? text : `${chars.slice(0, 24).join("")}...`;
    const known = `"${shown}" is not a unit known here`;
    return `Not answered yet: ${known}; the question asks for ${kvlab.families[asked]}.`;
  }

  // The slip with units that explains a wrong number, or null.
  function misreading(number, units, rightIf, bare) {
    const unit = units[0];
    if (unit.twin && rightIf(times(number, unit.twin))) {
      return [
        "gb-for-gib",
        "The number fits the other kind of prefix: GB vs GiB. 1 GiB is 2^30 bytes, 1 GB is " +
          "10^9 bytes; the same holds for KiB and kB, MiB and MB.",
      ];
    }
    if (SCALED.includes(unit.family)) {
      if (bare && SIZES.some((one) => rightIf(times(number, one))))
        return ["unit-missing", "Say the unit: the number alone is not the number of base units."];
      const scales = [
        ...SIZES.map((one) => times(one, unit.factor)),
        ...SIZES.map((one) => over(one, unit.factor)),
      ];
      if (scales.some((one) => rightIf(times(number, one)) || rightIf(over(number, one))))
        return ["wrong-prefix", "The digits fit, the prefix does not: check kilo, mega and giga."];
    }
    if (
      ["bytes", "bytes/s"].includes(unit.family) &&
      rightIf(over(times(number, unit.factor), whole(8)))
    )
      return ["bits-for-bytes", "Off by a factor of 8: are these bits or bytes?"];
    if (unit.family === "number" && number.n !== 0n && rightIf(over(unit.factor, number)))
      return ["upside-down", "Upside down: which of the two is divided by the other?"];
    const turned = { n: -number.n, d: number.d };
    if (number.n < 0n && rightIf(times(turned, unit.factor)))
      return ["sign", "The sign is wrong: the answer is not a negative number."];
    return null;
  }

  function gradeSlips(typed, units, target, scale, bare) {
    const number = typed.readings[0];
    const slip = misreading(number, units, (value) => scale.matches(value, target.value), bare);
    if (slip) return grade(slip[0] === "unit-missing" ? "unit missing" : "wrong", slip[1], slip[0]);
    const at = typed.digits.indexOf("."),
      places = at < 0 ? 0 : typed.digits.length - at - 1;
    const step = over(units[0].factor, fraction(`1e${places}`));
    if (scale.near(times(number, units[0].factor), typed.digits, step)) {
      return grade(
        "near",
        "Near: rounded too far, or off by a little. " +
          `Give ${target.exact ? "the exact integer" : "three digits"}.`,
      );
    }
    return grade(
      "wrong",
      number.n < 0n ? "Not right: the answer is not a negative number." : "Not right.",
    );
  }

  function gradeValue(typed, units, target, scale, bare) {
    const rows = typed.readings.map((reading) => units.map((unit) => times(reading, unit.factor)));
    const fits = (row, expected) => row.some((value) => scale.matches(value, expected));
    if (fits(rows[0], target.value)) return grade("right", "Right.");
    if (rows.slice(1).some((row) => fits(row, target.value))) {
      return grade(
        "can be read in two ways",
        "The point or comma can be read as a decimal mark or as a separator of thousands. " +
          "Write the number without separators.",
      );
    }
    for (const [id, value, feedback] of target.misconceptions) {
      if (fits(rows[0], value)) return grade("wrong", feedback, id);
    }
    return gradeSlips(typed, units, target, scale, bare);
  }

  function gradeTyped(typed, target) {
    const asked = kvlab.readUnit(target.unit)[0];
    const [text, per] = kvlab.splitPer(typed.unit);
    let units = unitsOf(text, target);
    if (!units.length) return grade("not readable", unknownUnit(text, asked.family));
    if (per && per !== target.per)
      return grade("wrong unit", `"Per ${per}" is not what the question asks for.`);
    if (!text && asked.family !== "number")
      units = [asked, { family: asked.family, factor: whole(1), twin: null }];
    const same = units.filter((unit) => unit.family === asked.family);
    if (!same.length) return grade("wrong unit", otherFamily(units[0].family, asked.family));
    return gradeValue(typed, same, target, scaleOf(target), !text);
  }

  kvlab.gradeNumber = (answer, target) => {
    const typed = kvlab.readTyped(answer);
    return typed.readings ? gradeTyped(typed, target) : unreadGrade(typed);
  };
  Object.assign(kvlab, { grade, unreadGrade });
})();
