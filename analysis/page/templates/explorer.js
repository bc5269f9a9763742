// The explorer: settles on any recorded presentation again, from the weights recorded before it,
// and draws how. Nothing here talks to anything outside the page.
(() => {
  "use strict";

  const source = document.getElementById("explorer-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const { tiles: m, interneurons: k, inputs: n, readouts: r, steps: S, moments } = data;
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

  /** Drive, fixed through the presentation: a = W x - sqrt(alpha) b. */
  function drive(i) {
    const W = row("W", i, m * n), b = row("b", i, m), x = row("x", i, n);
    const root = Math.sqrt(data.alpha);
    return Float64Array.from(b, (bias, tile) => {
      let sum = 0;
      for (let j = 0; j < n; j++) sum += W[tile * n + j] * x[j];
      return sum - root * bias;
    });
  }

  /** How a presentation with the drive a starts (rules.start): under gain control the drive A = |[a]+|
   * divides the step of h, and u and V start at its scale; up to the floor it counts as nothing. */
  function beginning(i, a) {
    const size = measured(a);
    if (data.gain !== null) return { gain: data.gain, scale: 1, ratio: 1, covered: 1 };
    if (size === 0) return { gain: 0, scale: 0, ratio: 1, covered: 0 };
    const last = data.reset ? size : arrays.lastSize[i];
    return { gain: 1 / size, scale: Math.sqrt(size), ratio: Math.sqrt(size / last), covered: 1 };
  }

  /** The size of a drive, |[a]+|, or 0 where it does not exceed the floor. */
  function measured(a) {
    let power = 0;
    for (const value of a) power += Math.max(value, 0) ** 2;
    const size = Math.sqrt(power);
    return size > data.floor ? size : 0;
  }

  /**
   * One step, all three from the old values, then rectified. V is k x m, row by row.
   *   h <- [h + gamma_h (a - V'u)]+   u <- [u + gamma_u (V h - u)]+   V <- [V + gamma_V (u h' - V)]+
   */
  function step(old, a, gain, next) {
    const [rateH, gammaU, gammaV] = data.gamma, gammaH = gain * rateH;
    const { h, u, V } = old;
    for (let i = 0; i < m; i++) {
      let inhibition = 0;
      for (let j = 0; j < k; j++) inhibition += u[j] * V[j * m + i];
      next.h[i] = Math.max(h[i] + gammaH * (a[i] - inhibition), 0);
    }
    for (let j = 0; j < k; j++) {
      let excitation = 0;
      for (let i = 0; i < m; i++) {
        const at = j * m + i;
        excitation += V[at] * h[i];
        next.V[at] = Math.max(V[at] + gammaV * (u[j] * h[i] - V[at]), 0);
      }
      next.u[j] = Math.max(u[j] + gammaU * (excitation - u[j]), 0);
    }
  }

  /** Readout rates y = clip(mu w.h + z, -1, 1), or tanh of the same; gated, w.h/sum(h) is in the
   * place of w.h; a label may clamp y. */
  function readout(i, h) {
    const w = row("w", i, r * m), z = row("labels", i, r);
    const total = data.gated ? h.reduce((sum, rate) => sum + rate, 0) : 1;
    return Float64Array.from(data.mu, (mu, neuron) => {
      let sum = 0;
      for (let tile = 0; tile < m; tile++) sum += w[neuron * m + tile] * h[tile];
      const net = mu * (total > 0 ? sum / total : 0) + z[neuron];
      const answer = data.readout === "tanh" ? Math.tanh(net) : Math.min(Math.max(net, -1), 1);
      return data.clamp ? z[neuron] + (1 - Math.abs(z[neuron])) * answer : answer;
    });
  }

  /** V = u h', row by row. */
  const outer = (u, h) => Float64Array.from({ length: k * m }, (_, at) => u[Math.floor(at / m)] * h[at % m]);

  /** Where the presentation starts: at rest, at the scale of its drive, or where the one before it
   * ended, with a spark of that. Idle tiles rest at zero. */
  function start(i, { scale, ratio, covered }) {
    const used = row("inUse", i, m);
    const restH = arrays.restH.map((rate, tile) => rate * used[tile]);
    const restU = arrays.restU.map((rate) => rate * scale);
    const restV = outer(restU, restH);
    if (data.reset) return { h: restH.map((rate) => covered * rate), u: restU, V: restV };
    const h = row("hBefore", i, m), u = row("uBefore", i, k);
    const kept = (values, rest) => values.map((value, at) => Math.max(ratio * value, data.spark * rest[at]));
    return { h: h.map((rate) => covered * rate), u: kept(u, restU), V: kept(outer(u, h), restV) };
  }

  /** The end without the way there: h = [a]+/|[a]+|, |u|^2 = |[a]+|, along where u rests. */
  function closedForm(i, a) {
    const size = measured(a);
    const h = a.map((value) => (size > 0 ? Math.max(value, 0) / size : 0));
    const length = Math.hypot(...arrays.restU);
    return { h, u: arrays.restU.map((value) => Math.sqrt(size) * value / length), y: readout(i, h) };
  }

  /** All S + 1 states of presentation i; state s is {h, u, V, y}. */
  function settle(i) {
    const a = drive(i), begin = beginning(i, a);
    const states = [start(i, begin)];
    for (let s = 1; s <= S; s++) {
      const next = { h: new Float64Array(m), u: new Float64Array(k), V: new Float64Array(k * m) };
      step(states[s - 1], a, begin.gain, next);
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

  /** Only the end of presentation i, in two alternating buffers. */
  function settledState(i) {
    const a = drive(i), begin = beginning(i, a);
    let now = start(i, begin);
    let spare = [0, 1].map(() => ({ h: new Float64Array(m), u: new Float64Array(k), V: new Float64Array(k * m) }));
    for (let s = 0; s < S; s++) {
      step(now, a, begin.gain, spare[0]);
      now = spare[0];
      spare = [spare[1], spare[0]];
    }
    return { ...now, y: readout(i, now.h) };
  }

  /** A vector on the sphere, put back among the data, in the two coordinates of the map. */
  function unlift(vector) {
    const length = Math.hypot(...vector) || 1;
    return data.axes.map((axis) => data.center[axis] + data.radius * vector[axis] / length);
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
    readColours();
    const state = view.run.states[view.step];
    drawControls();
    drawText(state);
    drawMap(state);
    drawTrace("h-trace", "h", m, (i) => signColour(weight(i)));
    drawTrace("u-trace", "u", k, () => colours.good);
    drawReadout();
    drawBars("h-bars", "h", state.h, [0, Math.max(...view.run.states.map((one) => Math.max(...one.h)), 1e-12)]);
    drawHeat(state);
    const scale = weightScale[view.neuron];
    drawBars("w-bars", "w", Float64Array.from({ length: m }, (_, i) => weight(i)), [-scale, scale]);
  }

  /** The tiles in use at this moment; the pictures have room for those that are at the end. */
  const inUse = () => order.filter((tile) => row("inUse", view.moment, m)[tile]);

  const weight = (tile) => row("w", view.moment, r * m)[view.neuron * m + tile];
  const signed = (value, digits = 2) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);
  const small = (value) => (value === 0 ? "0" : value.toExponential(1).replace("-", "−"));
  const tick = (value) => String(Number(value.toPrecision(2))).replace("-", "−");

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

  const colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "quiet", "line", "panel", "minus", "plus", "good", "none", "on-fill"])
      colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const signColour = (value) => (value > 0 ? colours.plus : value < 0 ? colours.minus : colours.none);

  /** A canvas as sharp as the screen, cleared, with the box inside its margins. */
  function prepare(id, { left = 50, right = 10, top = 8, bottom = 20 } = {}) {
    const canvas = element(id), width = canvas.clientWidth, height = canvas.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.lineJoin = "round";
    return { canvas, pen, left, top, right: width - right, bottom: height - bottom, width, height };
  }

  function line(pen, colour, width, path, dash = []) {
    pen.beginPath();
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    path.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
    pen.setLineDash([]);
  }

  function text(pen, value, x, y, align = "left", baseline = "middle", colour = colours.quiet) {
    pen.fillStyle = colour;
    pen.textAlign = align;
    pen.textBaseline = baseline;
    pen.fillText(value, x, y);
  }

  /** Horizontal lines with values at the left; returns the map from value to pixel. */
  function values(box, low, high, ticks) {
    const place = (value) => box.bottom - (value - low) / (high - low || 1) * (box.bottom - box.top);
    for (const value of ticks) {
      line(box.pen, colours.line, 1, [[box.left, place(value)], [box.right, place(value)]]);
      text(box.pen, tick(value), box.left - 6, place(value), "right");
    }
    return place;
  }

  const stepPlace = (box) => (s) => box.left + s / S * (box.right - box.left);

  function drawSteps(box) {
    const across = stepPlace(box);
    text(box.pen, "0", across(0), box.height - 2, "center", "bottom");
    text(box.pen, `step ${S}`, box.right, box.height - 2, "right", "bottom");
    line(box.pen, colours.ink, 1.5, [[across(view.step), box.top], [across(view.step), box.bottom]]);
    return across;
  }

  function drawTrace(id, name, count, colour) {
    const box = prepare(id), { states, target } = view.run;
    let high = 1e-12;
    for (const state of states) for (const value of state[name]) high = Math.max(high, value);
    const up = values(box, 0, high, [0, high / 2, high]), across = drawSteps(box);
    for (let i = 0; i < count; i++) {
      if (target[name][i] > 0)
        line(box.pen, colours.quiet, 1, [[box.left, up(target[name][i])], [box.right, up(target[name][i])]], [2, 4]);
    }
    for (let i = 0; i < count; i++)
      line(box.pen, colour(i), 1.4, states.map((state, s) => [across(s), up(state[name][i])]));
    box.canvas.setAttribute("aria-label",
      `${name} over ${S} steps, from at most ${tick(Math.max(...states[0][name]))} ` +
      `to at most ${tick(Math.max(...states[S][name]))}`);
  }

  function drawReadout() {
    const box = prepare("y-trace"), { states, target } = view.run, neuron = view.neuron;
    const up = values(box, -1.08, 1.08, [-1, 0, 1]), across = drawSteps(box);
    line(box.pen, colours.quiet, 1, [[box.left, up(target.y[neuron])], [box.right, up(target.y[neuron])]], [2, 4]);
    line(box.pen, signColour(states[S].y[neuron]), 2, states.map((state, s) => [across(s), up(state.y[neuron])]));
    box.canvas.setAttribute("aria-label", `y over ${S} steps, ending at ${signed(states[S].y[neuron])}`);
  }

  // The three pictures of the tiles share their columns; at the right the scale of V has its place.
  const TILES = { left: 64, right: 78, bottom: 8 };

  function drawBars(id, name, heights, [low, high]) {
    const box = prepare(id, TILES), wide = (box.right - box.left) / order.length;
    const up = values(box, low, high, low < 0 ? [low, 0, high] : [0, high]);
    text(box.pen, name, 4, (box.top + box.bottom) / 2, "left", "middle", colours.ink);
    order.forEach((tile, place) => {
      const value = heights[tile];
      box.pen.fillStyle = signColour(weight(tile));
      const from = Math.min(up(0), up(value)), size = Math.abs(up(value) - up(0));
      box.pen.fillRect(box.left + place * wide + wide * .12, from, Math.max(wide * .76, 1), size);
    });
    const size = (tile) => Math.abs(heights[tile]);
    const most = order.reduce((best, tile) => (size(tile) > size(best) ? tile : best), order[0]);
    box.canvas.setAttribute("aria-label",
      `${name} of ${inUse().length} tiles in use; the largest is ${tick(heights[most])}, at tile ${most}`);
  }

  function drawHeat({ V }) {
    const box = prepare("v-map", TILES);
    const wide = (box.right - box.left) / order.length, high = (box.bottom - box.top) / k;
    let scale = 1e-300;
    for (const state of view.run.states) for (const value of state.V) scale = Math.max(scale, value);
    text(box.pen, "V", 4, (box.top + box.bottom) / 2, "left", "middle", colours.ink);
    box.pen.strokeStyle = colours.line;
    for (let j = 0; j < k; j++) {
      if (high >= 11) text(box.pen, `u${j}`, box.left - 6, box.top + (j + .5) * high, "right");
      // Edges on whole pixels, or half-transparent neighbours would show seams.
      const [top, bottom] = [j, j + 1].map((edge) => Math.round(box.top + edge * high));
      order.forEach((tile, place) => {
        const [left, right] = [place, place + 1].map((edge) => Math.round(box.left + edge * wide));
        box.pen.globalAlpha = V[j * m + tile] / scale;
        box.pen.fillStyle = colours.good;
        box.pen.fillRect(left, top, right - left, bottom - top);
      });
      box.pen.globalAlpha = 1;
    }
    box.pen.lineWidth = 1;
    box.pen.strokeRect(box.left + .5, box.top + .5, box.right - box.left - 1, box.bottom - box.top - 1);
    drawScale(box, scale);
    box.canvas.setAttribute("aria-label",
      `V, ${k} interneurons by ${inUse().length} tiles in use, on a scale from 0 to ${tick(scale)}; ` +
      `the largest is ${tick(Math.max(...V))}`);
  }

  /** Which colour stands for which V: from 0 to the largest of this presentation. */
  function drawScale(box, scale) {
    const left = box.right + 10, width = 12, tall = box.bottom - box.top;
    box.pen.fillStyle = colours.good;
    for (let y = 0; y < tall; y++) {
      box.pen.globalAlpha = 1 - y / (tall - 1);
      box.pen.fillRect(left, box.top + y, width, 1);
    }
    box.pen.globalAlpha = 1;
    box.pen.strokeRect(left + .5, box.top + .5, width - 1, tall - 1);
    for (const [value, y] of [[scale, box.top + 5], [scale / 2, box.top + tall / 2], [0, box.bottom - 5]])
      text(box.pen, tick(value), left + width + 4, y);
  }

  /** Data to pixels, the same scale both ways. */
  function fit(box) {
    const room = [box.right - box.left, box.bottom - box.top];
    const scale = Math.min(...[0, 1].map((axis) => room[axis] / (high[axis] - low[axis] || 1)));
    return ([x, y]) => [
      (box.left + box.right) / 2 + (x - (low[0] + high[0]) / 2) * scale,
      (box.top + box.bottom) / 2 - (y - (low[1] + high[1]) / 2) * scale,
    ];
  }

  function drawMap({ h }) {
    const box = prepare("map", { left: 22, right: 22, top: 22, bottom: 22 }), { pen } = box;
    mapPlace = fit(box);
    const dot = Math.max(2, Math.min(3.4, box.width / 180));
    // What came before in the colour of its answer, what is still to come hollow.
    points.forEach((point, i) => {
      const [x, y] = mapPlace(point);
      const answer = row("y", i, r)[view.neuron];
      pen.beginPath();
      if (i > view.moment) {
        pen.globalAlpha = .55;
        pen.strokeStyle = colours.none;
        pen.lineWidth = 1;
        pen.arc(x, y, dot * .6, 0, 2 * Math.PI);
        pen.stroke();
      } else {
        pen.globalAlpha = .25 + .35 * Math.abs(answer);
        pen.fillStyle = signColour(answer);
        if (answer === 0) pen.arc(x, y, dot * .7, 0, 2 * Math.PI);
        else polygon(pen, x, y, dot * 1.25, 3, answer > 0 ? -Math.PI / 2 : Math.PI / 2);
        pen.fill();
      }
    });
    pen.globalAlpha = 1;
    const strongest = Math.max(...h, 1e-12), W = row("W", view.moment, m * n);
    const base = Math.max(5, Math.min(7, box.width / 80));
    for (const tile of inUse().sort((one, other) => h[one] - h[other])) {
      const [x, y] = mapPlace(unlift(W.subarray(tile * n, (tile + 1) * n)));
      const rate = h[tile] / strongest, sign = weight(tile);
      const size = base * (1 + 1.3 * rate);
      pen.beginPath();
      pen.arc(x, y, size, 0, 2 * Math.PI);
      pen.fillStyle = colours.panel;
      pen.globalAlpha = .75;
      pen.fill();
      pen.globalAlpha = rate;
      pen.fillStyle = signColour(sign);
      pen.fill();
      pen.globalAlpha = 1;
      pen.strokeStyle = signColour(sign);
      pen.lineWidth = 1.5;
      pen.stroke();
      // The sign of w again, for those who cannot tell the colours apart.
      const mark = rate > .5 ? colours["on-fill"] : signColour(sign), arm = size * .5;
      if (sign) line(pen, mark, 1.6, [[x - arm, y], [x + arm, y]]);
      if (sign > 0) line(pen, mark, 1.6, [[x, y - arm], [x, y + arm]]);
    }
    points.forEach((point, i) => {
      const label = row("labels", i, r)[view.neuron], [x, y] = mapPlace(point);
      if (!label) return;
      pen.globalAlpha = i > view.moment ? .35 : 1;
      pen.beginPath();
      polygon(pen, x, y, 9, 4, 0);
      pen.fillStyle = colours.ink;
      pen.fill();
      line(pen, colours.panel, 1.8, [[x - 4, y], [x + 4, y]]);
      if (label > 0) line(pen, colours.panel, 1.8, [[x, y - 4], [x, y + 4]]);
      pen.globalAlpha = 1;
    });
    const [x, y] = mapPlace(points[view.moment]);
    for (const [colour, width] of [[colours.panel, 6], [colours.good, 3.5]]) {
      pen.beginPath();
      pen.arc(x, y, 10, 0, 2 * Math.PI);
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.stroke();
    }
    box.canvas.setAttribute("aria-label",
      `${points.length} points and ${inUse().length} tiles in use; presentation ${moments[view.moment]} is chosen`);
  }

  function polygon(pen, x, y, size, corners, turn) {
    for (let c = 0; c < corners; c++) {
      const angle = turn + c * 2 * Math.PI / corners;
      pen[c ? "lineTo" : "moveTo"](x + size * Math.cos(angle), y + size * Math.sin(angle));
    }
    pen.closePath();
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
  data.mu.forEach((mu, neuron) => element("readout").add(new Option(`${neuron} (μ = ${mu})`, neuron)));
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
  new ResizeObserver(() => view.run && draw()).observe(element("explorer-body"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  // For the console: explorer.settle(i) is the whole trajectory of moment i, V row by row.
  window.explorer = {
    moments, show, settle, differences, view,
    place: (i) => mapPlace(points[i]),
  };
  show(Math.floor(last / 2));
})();
