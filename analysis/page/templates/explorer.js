// The explorer: settles on any recorded presentation again, from the weights recorded before it,
// and draws how. Nothing here talks to anything outside the page.
(() => {
  "use strict";

  const source = document.getElementById("explorer-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const { moments } = data, p = circuitModel.derived(data.circuit);
  const { m, k, n, r, steps: S } = p, direction = circuitModel.restDirection(k);
  const { colours, signColour, signed, small } = drawing;
  const last = moments.length - 1;
  const AGREES = 1e-6; // the difference from the record up to which the page says "agrees"
  const RESPONDS = 1e-6; // the rate above which a tile counts as responding

  const arrays = {};
  for (const [name, text] of Object.entries(data.arrays)) arrays[name] = decode(text);

  /** Little-endian float64 from base64. */
  function decode(text) {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return new Float64Array(bytes.buffer);
  }

  /** Row i of a recorded array whose rows have the given length. */
  const row = (name, i, length) => arrays[name].subarray(i * length, (i + 1) * length);

  // ---- The model -------------------------------------------------------------------------------

  /** Drive of presentation i, fixed through it, and how it starts. */
  function beginning(i) {
    const a = new Float64Array(m), begin = {};
    circuitModel.drive(p, row("W", i, m * n), row("b", i, m), row("x", i, n), a);
    circuitModel.start(p, a, p.reset ? 1 : arrays.lastSize[i], begin);
    return { a, begin };
  }

  function readout(i, h) {
    const y = new Float64Array(r);
    circuitModel.answer(p, row("w", i, r * m), h, row("labels", i, r), y);
    return y;
  }

  /** V = u h', row by row. */
  const outer = (u, h) => Float64Array.from({ length: k * m }, (_, at) => u[Math.floor(at / m)] * h[at % m]);

  /** Where the presentation starts: at rest, or where the one before it ended. */
  function start(i, begin) {
    const h = p.reset ? new Float64Array(m) : row("hBefore", i, m).slice();
    const u = p.reset ? new Float64Array(k) : row("uBefore", i, k).slice();
    const state = { h, u, V: outer(u, h) };
    circuitModel.begun(p, state, row("inUse", i, m), direction, begin);
    return state;
  }

  /** The end without the way there, along where u rests. */
  function closedForm(i, a) {
    const h = new Float64Array(m), size = circuitModel.fixedPoint(p, a, h);
    return { h, u: direction.map((value) => Math.sqrt(size) * value), y: readout(i, h) };
  }

  const room = new Float64Array(k);

  /** All S + 1 states of presentation i; state s is {h, u, V, y}. */
  function settle(i) {
    const { a, begin } = beginning(i), states = [start(i, begin)];
    for (let s = 1; s <= S; s++) {
      const { h, u, V } = states[s - 1], next = { h: h.slice(), u: u.slice(), V: V.slice() };
      circuitModel.step(p, next, a, begin.gain, room);
      states.push(next);
    }
    return { a, target: closedForm(i, a), states: states.map((state) => ({ ...state, y: readout(i, state.h) })) };
  }

  /** Largest differences of the settled state from the recorded one. */
  function differences(i, settled) {
    const largest = (one, other) => one.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at])), 0);
    return {
      h: largest(settled.h, row("h", i, m)),
      u: largest(settled.u, row("u", i, k)),
      y: largest(settled.y, row("y", i, r)),
    };
  }

  /** Only the end of presentation i. */
  function settledState(i) {
    const { a, begin } = beginning(i), now = start(i, begin);
    for (let s = 0; s < S; s++) circuitModel.step(p, now, a, begin.gain, room);
    return { ...now, y: readout(i, now.h) };
  }

  /** A vector on the sphere, put back among the data, in the two coordinates of the map. */
  function unlift(vector) {
    const length = Math.hypot(...vector) || 1;
    return data.axes.map((axis) => p.center[axis] + p.R * vector[axis] / length);
  }

  // ---- What is shown ---------------------------------------------------------------------------

  const element = (id) => document.getElementById(id);
  const points = moments.map((_, i) => unlift(row("x", i, n)));
  const low = [0, 1].map((axis) => points.reduce((least, point) => Math.min(least, point[axis]), Infinity));
  const high = [0, 1].map((axis) => points.reduce((most, point) => Math.max(most, point[axis]), -Infinity));
  const order = data.order;
  const weightScale = Array.from({ length: r }, (_, neuron) => {
    let most = 0;
    for (let i = 0; i <= last; i++)
      for (let tile = 0; tile < m; tile++) most = Math.max(most, Math.abs(arrays.w[(i * r + neuron) * m + tile]));
    return most || 1;
  });
  const view = { moment: 0, step: S, neuron: 0, run: null };
  let mapPlace = null; // from data to pixels, as last drawn

  function show(moment) {
    view.moment = Math.min(Math.max(moment, 0), last);
    view.run = settle(view.moment);
    draw();
  }

  function draw() {
    drawing.readColours();
    const state = view.run.states[view.step];
    drawControls();
    drawText(state);
    drawMap(state);
    drawTrace("h-trace", "h", m, (i) => signColour(weight(i)));
    drawTrace("u-trace", "u", k, () => colours.good);
    drawReadout();
    drawTiles(state);
  }

  /** The tiles in use at this moment; the pictures have room for those that are at the end. */
  const inUse = () => order.filter((tile) => row("inUse", view.moment, m)[tile]);

  const weight = (tile) => row("w", view.moment, r * m)[view.neuron * m + tile];

  function drawControls() {
    const t = moments[view.moment];
    element("moment").value = view.moment;
    element("moment").setAttribute("aria-valuetext", `presentation ${t}`);
    element("moment-value").textContent = `${t} of ${data.lastPresentation}`;
    element("step").value = view.step;
    element("step").setAttribute("aria-valuetext", `step ${view.step} of ${S}`);
    element("step-value").textContent = `${view.step} of ${S}`;
  }

  function drawText(state) {
    const i = view.moment, end = view.run.states[S];
    const responding = end.h.filter((value) => value > RESPONDS).length;
    const used = inUse().length, tiles = used < m ? `${used} tiles in use` : `${m} tiles`;
    const label = row("labels", i, r)[view.neuron];
    const kind = arrays.classes ? `, class ${signed(arrays.classes[i], 0) || "0"}` : "";
    element("status").textContent =
      `Presentation ${moments[i]}: point (${points[i].map((value) => signed(value)).join(", ")})${kind}, ` +
      `${label ? `labelled ${signed(label, 0)}` : "no label"}. ` +
      `${responding ? `${responding} of ${tiles} respond` : "No tile covers it"}; the readout answers ` +
      `y = ${signed(end.y[view.neuron])}` +
      (view.step < S ? `, and at step ${view.step} is at ${signed(state.y[view.neuron])}.` : ".");
    const difference = differences(i, end);
    const agrees = difference.h < AGREES;
    const check = element("check");
    check.classList.toggle("apart", !agrees);
    check.textContent = `${agrees ? "✓ agrees" : "✗ differs"}: settled in this page and recorded ` +
      `(${data.engine}), h differs by at most ${small(difference.h)}, u by ${small(difference.u)}, ` +
      `y by ${small(difference.y)}.`;
    check.dataset.difference = difference.h;
  }

  // ---- Drawing ---------------------------------------------------------------------------------

  function drawTrace(id, name, count, colour) {
    const { states, target } = view.run;
    drawing.traces(id, {
      name, S, colour, chosen: view.step, lines: Array.from({ length: count }, (_, i) => i),
      at: (s, i) => states[s][name][i], target: (i) => target[name][i],
    });
  }

  function drawReadout() {
    const box = drawing.prepare("y-trace"), { states, target } = view.run, neuron = view.neuron;
    const up = drawing.values(box, -1.08, 1.08, [-1, 0, 1]), across = drawing.steps(box, S, view.step);
    const end = up(target.y[neuron]);
    drawing.line(box.pen, colours.quiet, 1, [[box.left, end], [box.right, end]], [2, 4]);
    const path = states.map((state, s) => [across(s), up(state.y[neuron])]);
    drawing.line(box.pen, signColour(states[S].y[neuron]), 2, path);
    box.canvas.setAttribute("aria-label", `y over ${S} steps, ending at ${signed(states[S].y[neuron])}`);
  }

  /** Tile by tile: h, V and w, on scales that hold through the presentation. */
  function drawTiles({ h, V }) {
    const { states } = view.run, used = inUse().length, colour = (tile) => signColour(weight(tile));
    const most = (name) => states.reduce((found, one) => Math.max(found, ...one[name]), 0) || 1;
    drawing.bars("h-bars", { name: "h", heights: h, order, range: [0, most("h")], colour, used });
    drawing.heat("v-map", { V, k, m, order, scale: most("V"), used });
    const scale = weightScale[view.neuron], heights = Float64Array.from({ length: m }, (_, i) => weight(i));
    drawing.bars("w-bars", { name: "w", heights, order, range: [-scale, scale], colour, used });
  }

  function drawMap({ h }) {
    const box = drawing.prepare("map", { left: 22, right: 22, top: 22, bottom: 22 }), { pen } = box;
    mapPlace = drawing.fit(box, low, high);
    const dot = Math.max(2, Math.min(3.4, box.width / 180));
    // What came before in the colour of its answer, what is still to come hollow.
    points.forEach((point, i) => {
      const answer = i > view.moment ? null : row("y", i, r)[view.neuron];
      drawing.pointMark(pen, ...mapPlace(point), dot, answer);
    });
    const strongest = Math.max(...h, 1e-12), W = row("W", view.moment, m * n);
    const base = Math.max(5, Math.min(7, box.width / 80));
    for (const tile of inUse().sort((one, other) => h[one] - h[other])) {
      const center = mapPlace(unlift(W.subarray(tile * n, (tile + 1) * n)));
      drawing.tileMark(pen, ...center, base, weight(tile), h[tile] / strongest);
    }
    points.forEach((point, i) => {
      const label = row("labels", i, r)[view.neuron];
      if (label) drawing.labelMark(pen, ...mapPlace(point), label, i > view.moment);
    });
    drawing.nowMark(pen, ...mapPlace(points[view.moment]));
    box.canvas.setAttribute("aria-label",
      `${points.length} points and ${inUse().length} tiles in use; presentation ${moments[view.moment]} is chosen`);
  }

  // ---- Controls --------------------------------------------------------------------------------

  let playing = null; // the button whose animation runs

  function stop() {
    if (!playing) return;
    playing.setAttribute("aria-pressed", "false");
    playing.textContent = playing.dataset.title;
    playing = null;
    element("status").setAttribute("aria-live", "polite");
  }

  /** Call advance every so many milliseconds until it says that there is no more. */
  function play(button, pause, advance) {
    const again = playing !== button;
    stop();
    if (!again) return;
    playing = button;
    button.dataset.title = button.textContent;
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "true");
    element("status").setAttribute("aria-live", "off"); // nobody can listen that fast
    let before = -Infinity;
    const frame = (now) => {
      if (playing !== button) return;
      if (now - before >= pause) {
        before = now;
        if (!advance()) return stop();
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  function choose(moment) {
    stop();
    show(moment);
  }

  function playStream() {
    const stride = Math.max(1, Math.round(last / 600)); // a long stream takes about a minute
    if (view.moment >= last) show(0);
    view.step = S;
    play(element("play"), 90, () => {
      show(view.moment + stride);
      return view.moment < last;
    });
  }

  function playSettling() {
    const stride = Math.max(1, Math.round(S / 120)); // about three seconds
    if (view.step >= S) view.step = 0;
    play(element("settle"), 25, () => {
      view.step = Math.min(view.step + stride, S);
      draw();
      return view.step < S;
    });
  }

  function checkAll() {
    const button = element("check-all"), output = element("check-all-value");
    let i = 0, worst = 0, at = 0, apart = 0;
    button.disabled = true;
    const some = () => {
      const until = performance.now() + 30;
      for (; i <= last && performance.now() < until; i++) {
        const { h } = differences(i, settledState(i));
        if (!(h < AGREES)) apart++;
        if (!(h <= worst)) [worst, at] = [h, i];
      }
      if (i <= last) {
        button.textContent = `Checking: ${Math.floor(100 * i / (last + 1))} %`;
        setTimeout(some);
        return;
      }
      button.textContent = "Check every presentation";
      button.disabled = false;
      output.dataset.difference = worst;
      output.textContent = `Over ${last + 1} presentations, h differs by at most ${small(worst)} ` +
        `(presentation ${moments[at]}); ${apart || "none"} by more than ${small(AGREES)}.`;
    };
    some();
  }

  const KEYS = {
    ArrowLeft: () => view.moment - 1,
    ArrowRight: () => view.moment + 1,
    PageUp: () => view.moment - 10,
    PageDown: () => view.moment + 10,
    Home: () => 0,
    End: () => last,
  };

  element("moment").max = last;
  element("step").max = S;
  element("readout-control").hidden = r === 1;
  p.mu.forEach((mu, neuron) => element("readout").add(new Option(`${neuron} (μ = ${mu})`, neuron)));
  element("tile-order").textContent = data.alongManifold ? "ordered along the manifold" : "from left to right";
  element("moment").addEventListener("input", (event) => choose(Number(event.target.value)));
  element("step").addEventListener("input", (event) => {
    stop();
    view.step = Number(event.target.value);
    draw();
  });
  element("readout").addEventListener("change", (event) => {
    view.neuron = Number(event.target.value);
    draw();
  });
  element("previous").addEventListener("click", () => choose(view.moment - 1));
  element("next").addEventListener("click", () => choose(view.moment + 1));
  element("play").addEventListener("click", playStream);
  element("settle").addEventListener("click", playSettling);
  element("check-all").addEventListener("click", checkAll);
  element("map").addEventListener("click", (event) => {
    const edge = element("map").getBoundingClientRect();
    const click = [event.clientX - edge.left, event.clientY - edge.top];
    const distance = points.map((point) => {
      const [x, y] = mapPlace(point);
      return Math.hypot(x - click[0], y - click[1]);
    });
    choose(distance.indexOf(Math.min(...distance)));
  });
  element("map").addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === " ") playStream();
    else if (KEYS[event.key]) choose(KEYS[event.key]());
    else return;
    event.preventDefault();
  });
  drawing.measureHeight(document.querySelector(".controls"), "--bar");
  new ResizeObserver(() => view.run && draw()).observe(element("explorer-body"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  // For the console: explorer.settle(i) is the whole trajectory of moment i, V row by row.
  window.explorer = {
    moments, show, settle, differences, view,
    place: (i) => mapPlace(points[i]),
  };
  show(Math.floor(last / 2));
})();
