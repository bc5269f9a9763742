// How pages draw a circuit: colours of the style sheet, axes, traces over steps, tiles as bars and as
// a map of V, and the marks of points, tiles and labels. Nothing in here knows what is shown.
const drawing = (() => {
  "use strict";

  const colours = {};
  const NAMES = ["ink", "quiet", "line", "panel", "minus", "plus", "good", "none", "on-fill"];

  /** The style sheet's colours, which follow the visitor's choice of light and dark. */
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of NAMES) colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const signColour = (value) => (value > 0 ? colours.plus : value < 0 ? colours.minus : colours.none);

  const signed = (value, digits = 2) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);
  const small = (value) => (value === 0 ? "0" : value.toExponential(1).replace("-", "−"));
  /** A number beside an axis, which has room for few digits. */
  function tick(value) {
    if (!Number.isFinite(value)) return "∞"; // a rate that diverged
    const rounded = Number(value.toPrecision(2)), size = Math.abs(rounded);
    const plain = size === 0 || (size >= 1e-4 && size < 1e5);
    return (plain ? String(rounded) : rounded.toExponential().replace("e+", "e")).replaceAll("-", "−");
  }
  /** The largest of values above 0, among those that are numbers: rates that diverge end as none. */
  const largest = (values) => values.reduce((most, value) => (value > most && value < Infinity ? value : most), 0);

  /** A canvas as sharp as the screen, cleared, with the box inside its margins. */
  function prepare(id, { left = 50, right = 10, top = 8, bottom = 20 } = {}) {
    const canvas = document.getElementById(id), width = canvas.clientWidth, height = canvas.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    const pen = canvas.getContext("2d"), size = [width, height].map((length) => Math.round(length * ratio));
    // Setting a size clears the canvas, and takes long.
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
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

  function polygon(pen, x, y, size, corners, turn) {
    for (let c = 0; c < corners; c++) {
      const angle = turn + c * 2 * Math.PI / corners;
      pen[c ? "lineTo" : "moveTo"](x + size * Math.cos(angle), y + size * Math.sin(angle));
    }
    pen.closePath();
  }

  function circle(pen, x, y, size) {
    pen.beginPath();
    pen.arc(x, y, size, 0, 2 * Math.PI);
  }

  /** Tell the style sheet how tall an element is, under a name such as --bar. */
  function measureHeight(element, name) {
    const tell = () => document.documentElement.style.setProperty(name, `${element.offsetHeight}px`);
    new ResizeObserver(tell).observe(element);
  }

  // ---- Axes ------------------------------------------------------------------------------------

  /** Horizontal lines with values at the left; returns the map from value to pixel. */
  function values(box, low, high, ticks) {
    const place = (value) => box.bottom - (value - low) / (high - low || 1) * (box.bottom - box.top);
    for (const value of ticks) {
      line(box.pen, colours.line, 1, [[box.left, place(value)], [box.right, place(value)]]);
      text(box.pen, tick(value), box.left - 6, place(value), "right");
    }
    return place;
  }

  /** The two ends of an axis below the box; returns the map from 0 ... last to pixels. */
  function along(box, last, name) {
    text(box.pen, "0", box.left, box.height - 2, "center", "bottom");
    text(box.pen, name, box.right, box.height - 2, "right", "bottom");
    return (value) => box.left + value / (last || 1) * (box.right - box.left);
  }

  /** Steps along the axis, with a line at the one that is chosen. */
  function steps(box, S, chosen) {
    const across = along(box, S, `step ${S}`);
    if (chosen !== null)
      line(box.pen, colours.ink, 1.5, [[across(chosen), box.top], [across(chosen), box.bottom]]);
    return across;
  }

  /** Data to pixels, the same scale both ways; low and high are the corners that have to fit. */
  function fit(box, low, high) {
    const room = [box.right - box.left, box.bottom - box.top].map((length) => Math.max(length, 1)); // hidden, it has none
    const scale = Math.min(...[0, 1].map((axis) => room[axis] / (high[axis] - low[axis] || 1)));
    const middle = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const place = ([x, y]) => [
      middle[0] + (x - (low[0] + high[0]) / 2) * scale,
      middle[1] - (y - (low[1] + high[1]) / 2) * scale,
    ];
    place.scale = scale;
    place.back = (x, y) => [
      (low[0] + high[0]) / 2 + (x - middle[0]) / scale,
      (low[1] + high[1]) / 2 - (y - middle[1]) / scale,
    ];
    return place;
  }

  // ---- Pictures --------------------------------------------------------------------------------

  /**
   * Lines over the steps of a presentation. `at(s, i)` is the value of line i after step s,
   * `target(i)` where it should lead (nothing is drawn at 0), `lines` the numbers of the lines.
   */
  function traces(id, { name, S, lines, at, colour, target = () => 0, chosen = null, width = 1.4 }) {
    const box = prepare(id);
    const most = (s) => largest(lines.map((i) => at(s, i)));
    let high = 0;
    for (let s = 0; s <= S; s++) high = Math.max(high, most(s));
    high ||= 1; // nothing is there to be seen
    const up = values(box, 0, high, [0, high / 2, high]), across = steps(box, S, chosen);
    for (const i of lines)
      if (target(i) > 0)
        line(box.pen, colours.quiet, 1, [[box.left, up(target(i))], [box.right, up(target(i))]], [2, 4]);
    for (const i of lines)
      line(box.pen, colour(i), width, Array.from({ length: S + 1 }, (_, s) => [across(s), up(at(s, i))]));
    box.canvas.setAttribute("aria-label",
      `${name} over ${S} steps, from at most ${tick(most(0))} to at most ${tick(most(S))}`);
  }

  // The pictures of the tiles share their columns; at the right the scale of V has its place.
  const TILES = { left: 64, right: 78, bottom: 8 };

  /** One bar per tile, in the given order. `used` is how many are in use. */
  function bars(id, { name, heights, order, range: [low, high], colour, used }) {
    const box = prepare(id, TILES), wide = (box.right - box.left) / (order.length || 1);
    const up = values(box, low, high, low < 0 ? [low, 0, high] : [0, high]);
    text(box.pen, name, 4, (box.top + box.bottom) / 2, "left", "middle", colours.ink);
    order.forEach((tile, place) => {
      const value = heights[tile];
      box.pen.fillStyle = colour(tile);
      const from = Math.min(up(0), up(value)), size = Math.abs(up(value) - up(0));
      box.pen.fillRect(box.left + place * wide + wide * .12, from, Math.max(wide * .76, 1), size);
    });
    const size = (tile) => Math.abs(heights[tile]);
    const most = order.reduce((best, tile) => (size(tile) > size(best) ? tile : best), order[0]);
    box.canvas.setAttribute("aria-label", `${name} of ${used} tiles in use` +
      (order.length ? `; the largest is ${tick(heights[most])}, at tile ${most}` : ""));
  }

  /** V as a map: a row per interneuron, a column per tile in the given order; m columns in V. */
  function heat(id, { V, k, m, order, scale, used }) {
    const box = prepare(id, TILES);
    const wide = (box.right - box.left) / (order.length || 1), high = (box.bottom - box.top) / k;
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
    heatScale(box, scale);
    box.canvas.setAttribute("aria-label",
      `V, ${k} interneurons by ${used} tiles in use, on a scale from 0 to ${tick(scale)}; ` +
      `the largest is ${tick(largest(V))}`);
  }

  /** Which colour stands for which V: from 0 to the largest of this presentation. */
  function heatScale(box, scale) {
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

  // ---- Marks on the map ------------------------------------------------------------------------

  /** A point in the colour and the shape of what was answered to it; hollow if nothing was yet. */
  function pointMark(pen, x, y, dot, answer) {
    pen.beginPath();
    if (answer === null) {
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
    pen.globalAlpha = 1;
  }

  /** A tile that grows and fills with its rate, from 0 to 1, in the colour of its weight. */
  function tileMark(pen, x, y, base, weight, rate) {
    const size = base * (1 + 1.3 * rate);
    circle(pen, x, y, size);
    pen.fillStyle = colours.panel;
    pen.globalAlpha = .75;
    pen.fill();
    pen.globalAlpha = rate;
    pen.fillStyle = signColour(weight);
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = signColour(weight);
    pen.lineWidth = 1.5;
    pen.stroke();
    // The sign of w again, for those who cannot tell the colours apart.
    const mark = rate > .5 ? colours["on-fill"] : signColour(weight), arm = size * .5;
    if (weight) line(pen, mark, 1.6, [[x - arm, y], [x + arm, y]]);
    if (weight > 0) line(pen, mark, 1.6, [[x, y - arm], [x, y + arm]]);
  }

  /** A label, +1 or -1. */
  function labelMark(pen, x, y, label, faint = false) {
    pen.globalAlpha = faint ? .35 : 1;
    pen.beginPath();
    polygon(pen, x, y, 9, 4, 0);
    pen.fillStyle = colours.ink;
    pen.fill();
    line(pen, colours.panel, 1.8, [[x - 4, y], [x + 4, y]]);
    if (label > 0) line(pen, colours.panel, 1.8, [[x, y - 4], [x, y + 4]]);
    pen.globalAlpha = 1;
  }

  /** A ring around the point that is shown. */
  function nowMark(pen, x, y) {
    for (const [colour, width] of [[colours.panel, 6], [colours.good, 3.5]]) {
      circle(pen, x, y, 10);
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.stroke();
    }
  }

  return {
    colours, readColours, signColour, signed, small, tick, largest, prepare, line, text, circle, measureHeight,
    values, along, steps, fit, traces, bars, heat, pointMark, tileMark, labelMark, nowMark,
  };
})();
