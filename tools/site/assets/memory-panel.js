// The controls of the memory bar: one for each factor, presets that make a point in one press.
(() => {
  const data = kvlab.memoryData,
    { size } = kvlab.memoryPieces;
  const CONTEXTS = Array.from({ length: 14 }, (_, i) => 2 ** (i + 7));
  const divisors = (n) => Array.from({ length: n }, (_, i) => i + 1).filter((d) => n % d === 0);

  function panel(box) {
    const field = (name) => box.querySelector(`[data-name=${name}]`);
    const told = (name, words) => {
      field(name).closest(".factor").querySelector("output").textContent = words;
      if (field(name).type === "range") field(name).setAttribute("aria-valuetext", words);
    };
    const model = () => data.models.find((one) => one.name === field("model").value);

    // A range holds the place in its list of values, so that it steps as the quantity does.
    const lists = {
      kvHeads: () => divisors(model().heads),
      context: () => CONTEXTS,
      users: () => Array.from({ length: 256 }, (_, i) => i + 1),
      overhead: () => Array.from({ length: 41 }, (_, i) => i / 2),
    };
    const value = (name) =>
      lists[name] ? lists[name]()[Number(field(name).value)] : field(name).value;
    function put(name, wanted) {
      if (lists[name]) {
        const list = lists[name]();
        field(name).max = list.length - 1;
        field(name).value = Math.max(list.indexOf(wanted), 0);
      } else field(name).value = wanted;
    }

    function fitRanks() {
      for (const option of field("tp").options)
        option.disabled = model().heads % Number(option.value) !== 0;
      if (field("tp").selectedOptions[0].disabled) field("tp").value = "1";
    }

    function state() {
      const names = [
        "model",
        "kvHeads",
        "dtype",
        "context",
        "users",
        "gpu",
        "tp",
        "overhead",
        "guess",
      ];
      const now = Object.fromEntries(names.map((name) => [name, value(name)]));
      return { ...now, tp: Number(now.tp) };
    }

    function sumsOf(now) {
      const overhead = Math.round(now.overhead * 1e9);
      return kvlab.memorySums(
        model(),
        now.kvHeads,
        data.dtypes[now.dtype],
        data.dtypes.bf16,
        now.context,
        now.users,
        now.tp,
        data.gpus[now.gpu],
        overhead,
      );
    }

    function show() {
      const now = state(),
        sums = sumsOf(now);
      box.querySelector(".stage").innerHTML = kvlab.drawMemory(now, sums);
      const one = model(),
        [block, bytes] = data.dtypes[now.dtype];
      const each = `${bytes / block} bytes`;
      const kind = now.kvHeads === one.heads ? "MHA" : now.kvHeads === 1 ? "MQA" : "GQA";
      box.querySelector(".event").textContent =
        `${one.name}${now.kvHeads === one.kvHeads ? "" : ", changed"}: ` +
        `2 x ${one.layers} layers x ${now.kvHeads} KV heads x ${one.headDim} numbers x ${each} = ` +
        `${sums.token.toLocaleString("en-US")} bytes a token.`;
      const numbers = {
        "one token": size(sums.token),
        "one user": size(sums.request),
        "users that fit": sums.fit.toLocaleString("en-US"),
      };
      if (now.tp > 1) {
        numbers["one user on a rank"] = size(sums.requestOnRank);
        numbers["one pool would promise"] = `${sums.pooled.toLocaleString("en-US")} users`;
      }
      numbers.weights = `${size(sums.weights)}${now.tp > 1 ? " on a rank" : ""}, bf16`;
      box.querySelector(".numbers").replaceChildren(
        ...Object.entries(numbers).map(([name, words]) => {
          const row = document.createElement("div"),
            dt = document.createElement("dt"),
            dd = document.createElement("dd");
          dt.textContent = name;
          dd.textContent = words;
          row.append(dt, dd);
          return row;
        }),
      );
      told("kvHeads", `${now.kvHeads} of ${one.heads} (${kind})`);
      told("context", now.context.toLocaleString("en-US"));
      told("users", String(now.users));
      told("overhead", String(now.overhead));
    }

    function take(preset) {
      for (const name of ["model", "kvHeads", "dtype", "context", "users", "gpu", "tp", "overhead"])
        put(name, preset[name]);
      fitRanks();
      show();
    }

    box.addEventListener("input", (event) => {
      if (event.target.dataset.name === "model") {
        put("kvHeads", model().kvHeads);
        fitRanks();
      }
      show();
    });
    for (const button of box.querySelectorAll(".js-preset")) {
      button.addEventListener("click", () => take(data.presets[button.dataset.preset]));
    }
    take(Object.values(data.presets)[0]);
  }

  document.querySelectorAll(".memory").forEach(panel);
})();
