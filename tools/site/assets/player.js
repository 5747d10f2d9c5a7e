// Step through frames that were drawn beforehand: back, play, forward, a slider, arrow keys.
(() => {
  const HOLE = "\u0001",
    OWN = "\u0002",
    PLAY = "\u25b6 play",
    PAUSE = "\u275a\u275a pause";

  // Pieces are patterns with numbers in them; a frame is told by its changes from the one before.
  function unpack(data) {
    const table = data.pieces.map(([pattern, numbers]) => {
      const between = data.patterns[pattern].split(HOLE),
        values = numbers ? numbers.split(" ") : [];
      return between.map((words, i) => words + (values[i] ?? "")).join("");
    });
    const rows = [];
    let now = [];
    for (const change of data.changes) {
      now = [...now];
      for (const [start, end, fresh] of [...change].reverse())
        now.splice(start, end - start, ...fresh);
      rows.push(now);
    }
    return { table, rows, events: data.events };
  }

  function load(file) {
    return new Promise((done, fail) => {
      if (kvlab.frames[file]) {
        done(kvlab.frames[file]);
        return;
      }
      const script = document.createElement("script");
      script.src = `assets/frames/${file}.js`;
      script.onload = () => done(kvlab.frames[file]);
      script.onerror = fail;
      document.head.append(script);
    });
  }

  function player(box) {
    const get = (what) => box.querySelector(what);
    const stage = get(".stage"),
      event = get(".event"),
      slider = get("input[type=range]");
    const play = get(".js-play"),
      choice = get("select"),
      jumps = [...box.querySelectorAll(".js-jump")];
    let story = null,
      timer = null;
    event.setAttribute("role", "status");

    function draw() {
      if (!story) return;
      const step = Number(slider.value);
      stage.innerHTML = story.rows[step]
        .map((i) => story.table[i])
        .join("")
        .replaceAll(OWN, box.dataset.name);
      event.textContent = story.events[step];
      slider.setAttribute("aria-valuetext", `step ${step} of ${slider.max}: ${story.events[step]}`);
      get(".js-back").disabled = step === 0;
      get(".js-forward").disabled = step === Number(slider.max);
    }

    function go(step) {
      slider.value = Math.min(Math.max(step, 0), Number(slider.max));
      draw();
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = PLAY;
      event.setAttribute("aria-live", "polite");
    }

    function toggle() {
      if (timer) {
        stop();
        return;
      }
      if (slider.value === slider.max) go(0);
      play.textContent = PAUSE;
      event.setAttribute("aria-live", "off");
      timer = setInterval(
        () => {
          go(Number(slider.value) + 1);
          if (slider.value === slider.max) stop();
        },
        1000 * Number(box.dataset.seconds),
      );
    }

    async function take(file, start, steps) {
      stop();
      story = unpack(await load(file));
      slider.max = story.rows.length - 1;
      if (steps)
        jumps.forEach((button, i) => {
          button.dataset.step = steps[i];
        });
      go(start ?? Number(slider.value));
    }

    get(".js-back").addEventListener("click", () => {
      stop();
      go(Number(slider.value) - 1);
    });
    get(".js-forward").addEventListener("click", () => {
      stop();
      go(Number(slider.value) + 1);
    });
    play.addEventListener("click", toggle);
    slider.addEventListener("input", () => {
      stop();
      draw();
    });
    jumps.forEach((button) =>
      button.addEventListener("click", () => {
        stop();
        go(Number(button.dataset.step));
      }),
    );
    box.addEventListener("keydown", (press) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[press.key];
      if (!by || press.target === slider || press.target === choice) return;
      press.preventDefault();
      stop();
      go(Number(slider.value) + by);
    });
    if (choice) {
      choice.addEventListener("change", () => {
        const { start, jumps: steps } = choice.selectedOptions[0].dataset;
        take(choice.value, Number(start), JSON.parse(steps));
      });
    }
    take(box.dataset.file);
  }

  document.querySelectorAll(".player").forEach(player);
})();
