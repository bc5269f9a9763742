// The playground: a circuit that learns in the page, what is shown of it, and what a visitor can do
// to it. The circuit is in circuit.js, its data in scenes.js, its stream in session.js, and how things
// are drawn in drawing.js.
// Nothing here talks to anything outside the page.
(() => {
  "use strict";

  const source = document.getElementById("playground-data");
  const data = JSON.parse(source.textContent);
  const element = (id) => document.getElementById(id);
  const { colours, signColour, signed, small, tick } = drawing;
  const SLICE = 12; // milliseconds of a frame for presentations
  const FRAME = 30, PLOTS = 100, ANSWER = 200; // milliseconds between pictures while it runs
  const RESPONDS = 1e-6; // the rate above which a tile counts as responding
  const NEAR = 28; // pixels within which a click means a point
  const SPACING = .05; // between points that are drawn, in their units

  const settingsOf = (name, rule) => playing.settingsOf(data, name, rule);
  const makeSession = (settings, drawn, labels) => new playing.Session(data, settings, drawn, labels);
  let session = makeSession(settingsOf(data.start.data));
  let trace = null; // of the presentation that is shown
  let mine = null; // points and labels of one's own, while other data are shown
  let followed = null; // the link that the session came from, or that was written for it
  const view = {
    playing: false, owed: 0, before: 0, drawnAt: 0, plotsAt: 0, answerAt: 0, answerCost: 0, place: null,
    cursor: null, stroke: null, pen: null, answer: document.createElement("canvas"), discs: document.createElement("canvas"),
    rate: { t: 0, at: 0, value: NaN },
  };

  // ---- Time ------------------------------------------------------------------------------------

  /** Present so many points, or as many as fit into a slice of time; the last with a trace. */
  function present(count, until) {
    let done = 0;
    const { p } = session.circuit;
    if (!trace || trace.p !== p || trace.steps !== p.steps) trace = new circuitModel.Trace(p);
    while (done < count - 1 && performance.now() < until) {
      if (!session.next()) return diverged();
      done += 1;
    }
    if (!session.next(trace)) return diverged();
    return done + 1;
  }

  function diverged() {
    pause();
    notice(`The rates diverged at presentation ${session.time}, and nothing was learned from it: choose ` +
      "a smaller gain g, or gain control, and go on.");
    draw(true);
    return 0;
  }

  /** Whether there is nothing to present; it is said. */
  function lacksPoints() {
    if (!session.points.count) notice("There are no points yet: draw some on the plane.");
    return !session.points.count;
  }

  function play() {
    if (view.playing) return pause();
    if (lacksPoints()) return;
    notice("");
    Object.assign(view, { playing: true, owed: 1, before: performance.now() });
    Object.assign(view.rate, { t: session.time, at: view.before, value: NaN });
    element("play").textContent = "Pause";
    element("play").setAttribute("aria-pressed", "true");
    element("status").setAttribute("aria-live", "off"); // nobody can listen that fast
    requestAnimationFrame(frame);
  }

  function pause() {
    view.playing = false;
    element("play").textContent = "Play";
    element("play").setAttribute("aria-pressed", "false");
    element("status").setAttribute("aria-live", "polite");
    draw(true);
  }

  function frame() {
    if (!view.playing) return;
    const now = performance.now(), { speed } = session.settings;
    // What a slow machine cannot do is not made up for later.
    view.owed = speed ? Math.min(view.owed + speed * (now - view.before) / 1000, speed / 4 + 1) : Infinity;
    view.before = now;
    if (view.owed >= 1) view.owed -= present(Math.floor(view.owed), now + SLICE);
    if (!view.playing) return;
    countSpeed(performance.now());
    draw(false);
    requestAnimationFrame(frame);
  }

  function countSpeed(now) {
    const { rate } = view, passed = now - rate.at;
    if (passed < 500) return;
    rate.value = (session.time - rate.t) / passed * 1000;
    Object.assign(rate, { t: session.time, at: now });
  }

  function stepOnce() {
    if (lacksPoints()) return;
    if (view.playing) pause();
    notice("");
    if (present(1, Infinity)) draw(true);
  }

  function reset() {
    session.restart();
    trace = null;
    notice("");
    draw(true);
  }

  /** Presentations per second of this circuit in this browser, without anything being drawn. */
  function measure(milliseconds = 1000) {
    const other = makeSession({ ...session.settings }, session.drawn, new Map(session.labels));
    const begin = performance.now(), end = begin + milliseconds;
    let now = begin, count = 0; // not the session's time, which stands still where rates diverge
    while (now < end) {
      for (let i = 0; i < 20; i++, count++) other.next();
      now = performance.now();
    }
    return count / (now - begin) * 1000;
  }

  function showMeasured() {
    element("measured").textContent = "";
    if (lacksPoints()) return;
    const { p } = session.circuit;
    element("measured").textContent = `${Math.round(measure()).toLocaleString("en")} presentations per second ` +
      `at ${p.m} tiles, ${p.k} interneurons and ${p.steps} steps each, in this browser.`;
  }

  // ---- Drawing ---------------------------------------------------------------------------------

  /** Draw what is due, or all of it. */
  function draw(all) {
    const now = performance.now();
    if (!all && now - view.drawnAt < FRAME) return;
    view.drawnAt = now;
    drawing.readColours();
    drawPlane(all, now);
    drawCounters();
    if (!all && now - view.plotsAt < PLOTS) return;
    view.plotsAt = now;
    drawStatus();
    drawAccuracy();
    drawTraces();
    drawTiles();
  }

  const weight = (tile) => session.circuit.w[tile];
  const lesions = () => session.circuit.lesioned.reduce((sum, value) => sum + value, 0);
  const tilesInUse = () => Array.from({ length: session.circuit.inUse }, (_, tile) => tile);
  const largestWeight = () => session.circuit.w.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

  function drawCounters() {
    const { circuit } = session, { share } = session;
    element("count").textContent = session.time.toLocaleString("en");
    element("per-second").textContent = view.playing && view.rate.value > 0 ? Math.round(view.rate.value).toLocaleString("en") : "–";
    element("tiles-used").textContent = `${circuit.inUse - lesions()} of ${circuit.p.m}`;
    element("share").textContent = share === share ? share.toFixed(3) : "–";
  }

  function drawStatus() {
    const { circuit, shown, point } = session;
    if (shown < 0) {
      element("status").textContent = `${session.points.count} points, ${session.labels.size} with a label. ` +
        "Press Play, or click a point to give it a label.";
      return;
    }
    const where = `point (${signed(point[0])}, ${signed(point[1])}), ` +
      `${session.z[0] ? `labelled ${signed(session.z[0], 0)}` : "no label"}. `;
    if (circuit.diverged) {
      element("status").textContent = `After presentation ${session.time}: ${where}The rates diverged, and nothing was learned.`;
      return;
    }
    const responding = circuit.h.filter((rate) => rate > RESPONDS).length;
    element("status").textContent = `Presentation ${session.time}: ${where}` +
      `${responding ? `${responding} tile${responding > 1 ? "s" : ""} respond${responding > 1 ? "" : "s"}` : "No tile responds"}; ` +
      `y = ${signed(circuit.y[0])}. The last step moved the rates by ${small(circuit.change)} of themselves.`;
  }

  /** What is seen of the plane: the data, or all the room they need to turn. */
  function corners() {
    const { low, high, center } = session.scene;
    if (!session.settings.drift && !session.angle) return [low, high];
    const reach = Math.hypot(...[0, 1].map((axis) => Math.max(high[axis] - center[axis], center[axis] - low[axis]))) * .92;
    return [center.map((value) => value - reach), center.map((value) => value + reach)];
  }

  function drawPlane(all, now) {
    const box = drawing.prepare("plane", { left: 8, right: 8, top: 8, bottom: 8 }), { pen } = box;
    const { circuit, settings, points, labels } = session, place = drawing.fit(box, ...corners());
    const moved = !view.place || view.place.key !== (place.key = [box.width, box.height, ...corners()].join());
    view.place = place;
    if (!box.width || !box.height) return; // in a hidden frame; when it is shown all is drawn anew
    if (element("show-answer").checked) {
      if (all || moved || now - view.answerAt > Math.max(ANSWER, 10 * view.answerCost)) computeAnswer(box, place);
      pen.drawImage(view.answer, 0, 0, box.width, box.height);
    }
    const tiles = element("show-tiles").checked ? tilesInUse() : [];
    const centers = tiles.map((tile) => place(circuit.centerOf(tile, [0, 0])));
    drawDiscs(box, tiles, centers, settings.tile_radius * place.scale);
    const dot = Math.max(2, Math.min(3.4, box.width / 180)), at = [0, 0];
    if (element("show-points").checked)
      for (let i = 0; i < points.count; i++)
        drawing.pointMark(pen, ...place(points.at(i, settings.noise, session.angle, at)), dot, session.answers[i]);
    const strongest = drawing.largest(circuit.h) || 1, rate = (tile) => (circuit.diverged ? 0 : circuit.h[tile] / strongest);
    const base = Math.max(4, Math.min(6, box.width / 90));
    tiles.forEach((tile, i) => {
      if (!circuit.lesioned[tile])
        drawing.tileMark(pen, ...centers[i], base, weight(tile), rate(tile));
    });
    tiles.forEach((tile, i) => circuit.lesioned[tile] && cross(pen, ...centers[i]));
    for (const [i, label] of labels)
      drawing.labelMark(pen, ...place(points.at(i, settings.noise, session.angle, at)), label);
    if (session.shown >= 0) drawing.nowMark(pen, ...place(session.point));
    if (view.cursor && document.activeElement === box.canvas) drawCursor(pen, place);
    if (!points.count)
      drawing.text(pen, "Draw points here", box.width / 2, box.height / 2, "center", "middle", colours.quiet);
    box.canvas.setAttribute("aria-label", `${points.count} points, ${labels.size} with a label, and ` +
      `${circuit.inUse - lesions()} tiles in use; a click ${DOES[tool()]}`);
  }

  /** Discs of the tiles' radius, in the colour of w and the stronger the larger it is. */
  function drawDiscs(box, tiles, centers, radius) {
    const most = largestWeight(), { circuit } = session, { pen } = box;
    element("w-scale").textContent = most ? `disc: w from −${tick(most)} to +${tick(most)}` : "disc: w, all 0 yet";
    const strength = .35 * Math.min(1, 30 / tiles.length) / most; // many discs lie upon each other
    if (most && tiles.length)
      fillDiscs(box, tiles.map((tile) => (circuit.lesioned[tile] ? 0 : strength * weight(tile))), centers, radius);
    tiles.forEach((tile, i) => {
      if (circuit.lesioned[tile]) return;
      drawing.circle(pen, ...centers[i], radius);
      pen.strokeStyle = signColour(weight(tile));
      pen.globalAlpha = .45;
      pen.lineWidth = 1;
      pen.stroke();
      pen.globalAlpha = 1;
    });
  }

  /**
   * The discs' fill: their values summed on a grid of a few pixels, and then coloured. Laid upon each other
   * on a canvas, many faint ones would be rounded away one by one.
   */
  function fillDiscs(box, values, centers, radius) {
    const cell = 4, wide = Math.ceil(box.width / cell), high = Math.ceil(box.height / cell), stride = wide + 2;
    const edges = new Float64Array(high * stride); // by how much the sum changes from cell to cell
    const edge = (row, x, value) => {
      const bounded = Math.min(Math.max(x / cell, 0), wide), at = Math.floor(bounded), part = bounded - at;
      edges[row * stride + at] += (1 - part) * value;
      edges[row * stride + at + 1] += part * value;
    };
    centers.forEach(([x, y], i) => {
      const last = Math.min(Math.floor((y + radius) / cell), high - 1);
      for (let row = Math.max(Math.floor((y - radius) / cell), 0); values[i] && row <= last; row++) {
        const half = Math.sqrt(Math.max(radius ** 2 - ((row + .5) * cell - y) ** 2, 0));
        edge(row, x - half, values[i]);
        edge(row, x + half, -values[i]);
      }
    });
    Object.assign(view.discs, { width: wide, height: high });
    const pen = view.discs.getContext("2d"), image = pen.createImageData(wide, high);
    const [minus, plus] = [colours.minus, colours.plus].map(channels);
    for (let row = 0; row < high; row++) {
      for (let column = 0, sum = 0; column < wide; column++) {
        sum += edges[row * stride + column];
        if (Math.abs(sum) < 1e-3) continue; // less than can be seen
        const at = 4 * (row * wide + column), colour = sum > 0 ? plus : minus;
        for (let c = 0; c < 3; c++) image.data[at + c] = colour[c];
        image.data[at + 3] = 255 * (1 - Math.exp(-Math.abs(sum)));
      }
    }
    pen.putImageData(image, 0, 0);
    box.pen.drawImage(view.discs, 0, 0, cell * wide, cell * high);
  }

  function cross(pen, x, y) {
    drawing.line(pen, colours.panel, 6, [[x - 7, y - 7], [x + 7, y + 7]]);
    drawing.line(pen, colours.panel, 6, [[x + 7, y - 7], [x - 7, y + 7]]);
    drawing.line(pen, colours.ink, 2.5, [[x - 7, y - 7], [x + 7, y + 7]]);
    drawing.line(pen, colours.ink, 2.5, [[x + 7, y - 7], [x - 7, y + 7]]);
  }

  function drawCursor(pen, place) {
    const [x, y] = place(view.cursor);
    for (const [colour, width] of [[colours.panel, 5], [colours.ink, 2]]) {
      drawing.line(pen, colour, width, [[x - 12, y], [x + 12, y]]);
      drawing.line(pen, colour, width, [[x, y - 12], [x, y + 12]]);
    }
  }

  /** What the circuit would answer in every place, by the closed form, on a grid of a few pixels. */
  function computeAnswer(box, place) {
    const begin = performance.now(), cell = 6, { scene, circuit } = session;
    const wide = Math.ceil(box.width / cell), high = Math.ceil(box.height / cell), picture = view.answer;
    Object.assign(picture, { width: wide, height: high });
    const pen = picture.getContext("2d"), image = pen.createImageData(wide, high);
    const [minus, plus] = [colours.minus, colours.plus].map(channels);
    for (let row = 0; row < high; row++) {
      for (let column = 0; column < wide; column++) {
        const point = place.back((column + .5) / wide * box.width, (row + .5) / high * box.height);
        if (Math.hypot(point[0] - scene.center[0], point[1] - scene.center[1]) >= scene.radius) continue;
        const y = circuit.answerTo(point), at = 4 * (row * wide + column);
        image.data.set(y > 0 ? plus : minus, at);
        image.data[at + 3] = 70 * Math.abs(y);
      }
    }
    pen.putImageData(image, 0, 0);
    view.answerAt = performance.now();
    view.answerCost = view.answerAt - begin;
  }

  /** Red, green and blue of a colour such as #0072b2. */
  const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  function drawAccuracy() {
    const box = drawing.prepare("accuracy"), { t, share } = session.history, last = Math.max(session.time, 1);
    const up = drawing.values(box, 0, 1, [0, .5, 1]);
    const across = drawing.along(box, last, `presentation ${last.toLocaleString("en")}`);
    drawing.line(box.pen, colours.good, 2, t.map((value, i) => [across(value), up(share[i])]));
    box.canvas.setAttribute("aria-label", session.share === session.share
      ? `${element("accuracy-name").textContent}: now ${session.share.toFixed(3)}, after ${session.time} presentations`
      : "Nothing was answered yet");
  }

  function drawTraces() {
    const { circuit } = session, { m, k } = circuit.p, S = trace ? trace.steps : circuit.p.steps;
    const target = { h: new Float64Array(m), u: new Float64Array(k) };
    if (trace) {
      const size = circuitModel.fixedPoint(circuit.p, circuit.a, target.h);
      target.u = circuit.direction.map((value) => Math.sqrt(size) * value);
    }
    const tiles = trace ? tilesInUse().filter((tile) => trace.h[tile] > 0 || circuit.h[tile] > 0) : [];
    const responding = tiles.filter((tile) => circuit.h[tile] > RESPONDS);
    const plot = (id, name, length, lines, colour) => drawing.traces(id, {
      name, S, lines, colour, at: (s, i) => trace[name][s * length + i], target: (i) => target[name]?.[i] ?? 0,
      width: 1.2,
    });
    plot("h-trace", "h", m, tiles, (i) => signColour(weight(i)));
    plot("u-trace", "u", k, trace ? Array.from({ length: k }, (_, j) => j) : [], () => colours.good);
    const synapses = responding.flatMap((tile) => Array.from({ length: k }, (_, j) => j * m + tile));
    plot("v-trace", "V", k * m, synapses, (at) => signColour(weight(at % m)));
  }

  function drawTiles() {
    const { circuit } = session, { m, k } = circuit.p, order = tilesInUse(), used = order.length - lesions();
    const colour = (tile) => (circuit.lesioned[tile] ? colours.none : signColour(weight(tile)));
    const most = (values) => drawing.largest(values) || 1;
    const scale = largestWeight() || 1;
    drawing.bars("h-bars", { name: "h", heights: circuit.h, order, range: [0, most(circuit.h)], colour, used });
    drawing.heat("v-map", { V: circuit.V, k, m, order, scale: most(circuit.V), used });
    drawing.bars("w-bars", { name: "w", heights: circuit.w, order, range: [-scale, scale], colour, used });
  }

  // ---- Settings --------------------------------------------------------------------------------

  /** Positions of a slider: its own values, or a hundred at equal ratios, after a name if it has one. */
  const limits = (slider) => ({ ...slider, high: slider.name === "noise" ? session.scene.most_noise : slider.high });
  const firstPosition = (slider) => (slider.first === null ? 0 : 1);

  function positionOf(slider, value) {
    const { low, high, step, first } = limits(slider);
    if (step) return value;
    if (value === first) return 0;
    return firstPosition(slider) + Math.round(100 * Math.log(value / low) / Math.log(high / low));
  }

  function valueAt(slider, position) {
    const { low, high, step, first } = limits(slider);
    if (step) return position;
    if (first !== null && position === 0) return first;
    return Number((low * (high / low) ** ((position - firstPosition(slider)) / 100)).toPrecision(3));
  }

  const WORDS = { control: "control, 1/‖[a]₊‖", running_mean: "running mean, 1/t" };

  function syncSlider(slider) {
    const input = element(slider.name), { low, high, step } = limits(slider), value = session.settings[slider.name];
    [input.min, input.max, input.step] = step ? [low, high, step] : [0, firstPosition(slider) + 100, 1];
    if (slider.name === "readout_rate" && session.settings.readout_rule === "gated") input.min = 1;
    input.value = positionOf(slider, value);
    const text = WORDS[value] ?? value.toLocaleString("en", { maximumSignificantDigits: 3 });
    element(`${slider.name}-value`).textContent = text;
    input.setAttribute("aria-valuetext", text);
  }

  /** Show what the settings are. */
  function sync() {
    const { settings, scene } = session;
    data.sliders.forEach(syncSlider);
    element("data").value = settings.data;
    element("seed").value = settings.seed;
    element("rule").value = settings.readout_rule;
    for (const name of ["drift", "recycle"]) element(name).setAttribute("aria-pressed", settings[name]);
    element("speed").value = data.speeds.indexOf(settings.speed);
    const speed = settings.speed ? `${settings.speed} per second` : "as fast as possible";
    element("speed-value").textContent = speed;
    element("speed").setAttribute("aria-valuetext", speed);
    const own = settings.data === "own";
    element("share-name").textContent = own ? "decided" : "right";
    element("accuracy-name").textContent = own ? "Decided" : "Right answers";
    element("accuracy-about").textContent = scene.about;
    element("clear").textContent = own ? "Clear points" : "Clear labels";
    hideLink();
  }

  /** Say something, or take back what was said. There is room for one message. */
  function notice(text) {
    if (text) hideLink();
    element("notice").textContent = text;
    element("notice-row").hidden = !text;
  }

  /** The link no longer says what there is. */
  function hideLink() {
    element("link-row").hidden = true;
  }

  function closeMessages() {
    notice("");
    hideLink();
  }

  /** Change a setting; what gives the circuit another shape begins it anew. */
  function change(name, value) {
    session.settings[name] = value;
    if (data.sliders.find((slider) => slider.name === name)?.restarts) {
      session.restart();
      trace = null;
    } else session.retune();
    sync();
    draw(true);
  }

  /** Begin with other data, and what suits them. */
  function begin(settings, drawn, labels) {
    if (session.settings.data === "own" && session.points.count)
      mine = { drawn: session.drawn, labels: session.labels };
    session = makeSession(settings, drawn, labels);
    trace = null;
    if (settings.data === "own" && !session.points.count) chooseTool("draw");
    else if (tool() === "draw" && settings.data !== "own") chooseTool("plus");
    if (view.playing && !session.points.count) pause();
    sync();
    draw(true);
  }

  const kept = () => ({ seed: session.settings.seed, speed: session.settings.speed });

  function chooseData(name) {
    notice("");
    const rule = session.settings.readout_rule === data.scenes[session.settings.data].settings.readout_rule
      ? undefined : session.settings.readout_rule;
    const { drawn, labels } = (name === "own" && mine) || {};
    begin({ ...settingsOf(name, rule), ...kept(), drift: false }, drawn, labels);
  }

  function chooseRule(rule) {
    const wanted = settingsOf(session.settings.data, rule);
    for (const name of ["readout_rule", "mu", "readout_rate"]) session.settings[name] = wanted[name];
    reset();
    sync();
  }

  function chooseSeed(text) {
    const seed = Number(text), most = Number(element("seed").max);
    if (text.trim() === "" || !(seed >= 0 && seed <= most && seed === Math.round(seed))) {
      notice(`The seed must be a whole number from 0 to ${most}, got “${text.slice(0, 30)}”.`);
      return sync();
    }
    notice("");
    begin({ ...session.settings, seed }, session.drawn, session.settings.data === "own" ? session.labels : null);
  }

  function toggleDrift() {
    session.settings.drift = !session.settings.drift;
    if (session.settings.drift) session.settings.recycle = true; // or no tile is left for where data go
    change("drift", session.settings.drift);
  }

  function faster(by) {
    const at = data.speeds.indexOf(session.settings.speed) + by;
    if (at >= 0 && at < data.speeds.length) change("speed", data.speeds[at]);
  }

  // ---- The link --------------------------------------------------------------------------------

  /** Take over what the link says; a damaged one is said, and changes nothing else. */
  function restore() {
    const fragment = location.hash.slice(1);
    if (element(fragment)) followed ??= ""; // a place in the page
    if (element(fragment) || fragment === followed) return; // or back from one
    followed = fragment;
    notice("");
    if (!fragment) return begin(settingsOf(data.start.data));
    try {
      const { settings, drawn, labels } = scenes.fromFragment(fragment, data, settingsOf);
      begin(settings, drawn, labels);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      begin(settingsOf(data.start.data));
      notice(`This link is damaged: ${error.message}. The page starts with its defaults.`);
    }
  }

  /** The address says what there is, and Back comes back to it. */
  function writeAddress() {
    history.replaceState(null, "", `#${session.fragment}`);
    followed = location.hash.slice(1);
  }

  async function copyLink() {
    writeAddress();
    const link = element("link"), about = element("link-about");
    notice("");
    element("link-row").hidden = false;
    link.value = location.href;
    try {
      await navigator.clipboard.writeText(link.value);
      about.textContent = "Copied.";
    } catch {
      link.select(); // the browser does not let the page write to the clipboard
      about.textContent = "Copy it here.";
    }
  }

  // ---- The plane -------------------------------------------------------------------------------

  const DOES = {
    plus: "labels the nearest point +", minus: "labels the nearest point −",
    lesion: "takes the nearest tile out", draw: "draws points",
  };
  const tool = () => document.querySelector("input[name=tool]:checked").value;

  function chooseTool(name) {
    element(`tool-${name}`).checked = true;
    element("plane").classList.toggle("drawing", name === "draw");
    notice(name === "draw" && session.settings.data !== "own"
      ? "The first stroke on the plane changes the data to My own, and begins the circuit anew." : "");
    draw(true);
  }

  /** What is drawn is drawn among points of one's own, the first stroke too. */
  function readyTool() {
    if (tool() === "draw" && session.settings.data !== "own") chooseData("own");
  }

  /** What a click at a place does. */
  function act(place) {
    const name = tool();
    if (name === "draw") drawAt(place);
    else if (name === "lesion") lesionAt(place);
    else labelAt(place, name === "plus" ? 1 : -1);
    draw(true);
  }

  function labelAt(place, label) {
    const { points, settings } = session;
    const [i, away] = points.nearest(place, settings.noise, session.angle);
    if (away * view.place.scale > NEAR) return notice("There is no point near: click closer to one to give it a label.");
    notice("");
    session.label(i, label);
    hideLink();
  }

  function lesionAt(place) {
    const { circuit, settings } = session;
    const working = tilesInUse().filter((tile) => !circuit.lesioned[tile]);
    let best = -1, least = Math.max(settings.tile_radius, NEAR / view.place.scale);
    for (const tile of working) {
      const [x, y] = circuit.centerOf(tile, [0, 0]), away = Math.hypot(x - place[0], y - place[1]);
      if (away < least) [best, least] = [tile, away];
    }
    if (best < 0)
      return notice(working.length ? "There is no tile near: click closer to one to take it out."
        : circuit.inUse ? "All tiles in use have been taken out; others come with points that none answers."
          : "There is no tile yet: tiles come with the first points.");
    notice("");
    circuit.lesion(best);
  }

  /**
   * Points along the way from where the stroke was. Places are as they are seen; what is kept is where
   * a point was before the data turned.
   */
  function drawAt(place) {
    const { low, high, center } = session.scene, { angle } = session;
    const base = (at) => scenes.turned(at, center, -angle).map((value, axis) => Math.min(Math.max(value, low[axis]), high[axis]));
    const to = scenes.turned(base(place), center, angle), from = view.stroke ?? to;
    const away = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (view.stroke && away < SPACING) return;
    const count = Math.max(Math.floor(away / SPACING), 1);
    for (let i = 1; i <= count; i++)
      session.draw(...base(from.map((value, axis) => value + i / count * (to[axis] - value))));
    view.stroke = to;
    notice(session.points.count >= scenes.MOST_POINTS ? `There is room for ${scenes.MOST_POINTS} points, and no more.` : "");
    hideLink();
  }

  function clear() {
    if (session.settings.data === "own") {
      begin(session.settings, [], new Map());
      mine = null;
    } else {
      session.labels.clear();
      session.queue.length = 0;
      hideLink();
      draw(true);
    }
  }

  const placeOf = (event) => {
    const edge = element("plane").getBoundingClientRect();
    return view.place.back(event.clientX - edge.left, event.clientY - edge.top);
  };

  function moveCursor(key, fine) {
    const [low, high] = corners(), size = (high[0] - low[0]) * (fine ? .005 : .025);
    const [x, y] = view.cursor ?? low.map((value, axis) => (value + high[axis]) / 2);
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
    view.cursor = [x, y].map((value, axis) => Math.min(Math.max(value + by[axis] * size, low[axis]), high[axis]));
    draw(true);
  }

  /** What a click does, where the cursor is seen. */
  function actAtCursor() {
    const seen = view.place(view.cursor);
    view.stroke = null;
    readyTool();
    view.cursor = view.place.back(...seen);
    act(view.cursor);
  }

  // ---- Events ----------------------------------------------------------------------------------

  const KEYS = {
    " ": play, ArrowRight: stepOnce, r: reset, l: () => chooseTool(tool() === "plus" ? "minus" : "plus"),
    x: () => chooseTool("lesion"), p: () => chooseTool("draw"), d: toggleDrift, c: copyLink, Escape: closeMessages,
    "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1), "−": () => faster(-1),
  };
  /** Whether a key that is held down goes on: what it does is a small step, not a switch. */
  const repeats = (key) => key.startsWith("Arrow") || "+=-−".includes(key);

  /** Whether a key means something to the control that has the keyboard. */
  function taken(target, key) {
    if (target.matches("select, input[type=number], input[type=text]")) return key !== "Escape";
    // Who is setting a value does not mean to lose what the circuit has learned.
    if (target.matches("input")) return key === " " || key === "r" || key.startsWith("Arrow");
    return key === " " && target.matches("button, a, summary");
  }

  document.addEventListener("keydown", (event) => {
    const { key } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || taken(event.target, key)) return;
    const acts = KEYS[key] || (event.target.id === "plane" && key === "Enter");
    if (event.repeat && acts && !repeats(key)) return event.preventDefault(); // or Space would scroll
    if (event.target.id === "plane" && key.startsWith("Arrow")) moveCursor(key, event.shiftKey);
    else if (event.target.id === "plane" && key === "Enter" && view.cursor) actAtCursor();
    else if (KEYS[key]) KEYS[key]();
    else return;
    event.preventDefault();
  });

  for (const [id, handler] of Object.entries({
    play, step: stepOnce, reset, copy: copyLink, clear, drift: toggleDrift,
    "close-notice": () => notice(""), "close-link": hideLink,
    recycle: () => change("recycle", !session.settings.recycle),
    measure: showMeasured,
  })) element(id).addEventListener("click", handler);
  for (const slider of data.sliders)
    element(slider.name).addEventListener("input", (event) => change(slider.name, valueAt(slider, Number(event.target.value))));
  element("speed").addEventListener("input", (event) => change("speed", data.speeds[Number(event.target.value)]));
  element("data").addEventListener("change", (event) => chooseData(event.target.value));
  element("rule").addEventListener("change", (event) => chooseRule(event.target.value));
  element("seed").addEventListener("change", (event) => chooseSeed(event.target.value));
  for (const input of document.querySelectorAll("input[name=tool]")) input.addEventListener("change", () => chooseTool(input.value));
  for (const name of ["answer", "tiles", "points"]) element(`show-${name}`).addEventListener("change", () => draw(true));
  // A finger that scrolls the page also goes down on the plane: only a pen that draws acts on that.
  element("plane").addEventListener("click", (event) => {
    view.cursor = null;
    if (tool() !== "draw") act(placeOf(event));
  });
  element("plane").addEventListener("pointerdown", (event) => {
    if (event.button || tool() !== "draw" || view.pen !== null) return; // a second finger draws nothing
    Object.assign(view, { pen: event.pointerId, stroke: null, cursor: null });
    element("plane").setPointerCapture(event.pointerId);
    readyTool();
    act(placeOf(event));
  });
  element("plane").addEventListener("pointermove", (event) => {
    if (tool() === "draw" && event.pointerId === view.pen && event.buttons) act(placeOf(event));
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"])
    element("plane").addEventListener(name, (event) => {
      if (event.pointerId === view.pen) Object.assign(view, { pen: null, stroke: null });
    });
  for (const name of ["focus", "blur"]) element("plane").addEventListener(name, () => draw(true));
  window.addEventListener("hashchange", restore);
  // An address that says more than the link also makes a link work that was followed before.
  for (const link of document.querySelectorAll("nav a"))
    link.addEventListener("click", (event) => {
      if (!(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) writeAddress();
    });
  drawing.measureHeight(document.querySelector(".controls"), "--bar");
  drawing.measureHeight(document.querySelector(".messages"), "--messages");
  new ResizeObserver(() => draw(true)).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));

  // For the console: the running session, and a circuit of one's own.
  window.playground = {
    data, view, measure, present,
    get session() { return session; },
    place: (point) => view.place(point),
    Circuit: circuitModel.Circuit, Points: scenes.Points, generator: scenes.generator,
  };
  element("tool-plus").checked = true;
  sync();
  restore();
})();
