// The playground's data: points from a seed, points that are drawn, and the link that holds them with
// all settings. Nothing in here touches the page.
const scenes = (() => {
  "use strict";

  const MOST_POINTS = 2000; // of one's own

  /** Random numbers of a seed: Marsaglia's xorshift with 128 bits; `stream` makes another sequence. */
  function generator(seed, stream = 0) {
    // Numbers far apart from seeds that are near: a count in odd steps, well mixed.
    let count = (Math.imul(seed, 0x9e3779b1) + Math.imul(stream, 0x632be5ab)) >>> 0;
    const mixed = () => {
      count = (count + 0x6d2b79f5) >>> 0;
      let bits = count;
      for (const factor of [0x2c1b3c6d, 0x297a2d39]) bits = Math.imul(bits ^ (bits >>> 15), factor);
      return (bits ^ (bits >>> 16)) >>> 0;
    };
    const state = Uint32Array.of(mixed(), mixed(), mixed(), mixed() | 1);
    /** Uniform above 0 and below 1. */
    function uniform() {
      let t = state[0] ^ (state[0] << 11);
      state.copyWithin(0, 1);
      t = t ^ (t >>> 8) ^ state[2] ^ (state[2] >>> 19);
      state[3] = t;
      return (state[3] + .5) / 2 ** 32;
    }
    /** A pair of Gaussian numbers, none farther out than five standard deviations. */
    function gaussian() {
      const size = Math.min(Math.sqrt(-2 * Math.log(uniform())), 5), angle = 2 * Math.PI * uniform();
      return [size * Math.cos(angle), size * Math.sin(angle)];
    }
    return { uniform, gaussian };
  }

  /** Length of the spiral r = theta from the origin to theta, and its inverse by Newton's method. */
  const spiralLength = (theta) => (theta * Math.sqrt(1 + theta * theta) + Math.asinh(theta)) / 2;
  function spiralAngle(length) {
    let theta = Math.min(length, Math.sqrt(2 * length));
    for (let i = 0; i < 8; i++) theta -= (spiralLength(theta) - length) / Math.sqrt(1 + theta * theta);
    return theta;
  }

  /** One point without noise, and its class, as simulations/datasets.py has them. */
  const MAKERS = {
    moons(random, i) {
      const angle = Math.PI * random.uniform(), x = Math.cos(angle), y = Math.sin(angle);
      return i % 2 ? [1 - x, .5 - y, 1] : [x, y, -1];
    },
    arcs(random, i, { angles, gap }) {
      const [first, last] = angles.map(spiralLength), label = i % 2 ? 1 : -1;
      const theta = spiralAngle(first + random.uniform() * (last - first));
      const radius = -label * gap / Math.PI * theta;
      return [radius * Math.cos(theta), radius * Math.sin(theta), label];
    },
    /** The classes are the sides of the cut that treats labels near two opposite corners alike. */
    square(random) {
      const x = random.uniform(), y = random.uniform();
      return [x, y, x + y > 1 ? 1 : -1];
    },
    /** A ring around a disc. */
    ring(random, i, { core }) {
      const angle = 2 * Math.PI * random.uniform(), root = Math.sqrt(random.uniform());
      const label = i % 4 ? 1 : -1, radius = label > 0 ? 1 : core * root;
      return [radius * Math.cos(angle), radius * Math.sin(angle), label];
    },
  };

  /** A place turned about a middle. */
  function turned(place, middle, angle, out = [0, 0]) {
    const cos = Math.cos(angle), sin = Math.sin(angle), x = place[0] - middle[0], y = place[1] - middle[1];
    out[0] = middle[0] + cos * x - sin * y;
    out[1] = middle[1] + sin * x + cos * y;
    return out;
  }

  /**
   * Points as the circuit gets them: base + noise * offset, the base turned about the middle. Points
   * of one's own have no class (0).
   */
  class Points {
    constructor(name, scene, seed, drawn = []) {
      Object.assign(this, { name, middle: scene.center, base: [], offset: [], classes: [] });
      this.random = generator(seed);
      if (name === "own") for (const [x, y] of drawn) this.add(x, y, 0);
      else for (let i = 0; i < scene.points; i++) this.add(...MAKERS[name](this.random, i, scene));
    }

    get count() {
      return this.base.length;
    }

    add(x, y, label) {
      this.base.push([x, y]);
      this.offset.push(this.random.gaussian());
      this.classes.push(label);
    }

    /** Point i at a noise, turned by an angle. */
    at(i, noise, angle, out = [0, 0]) {
      turned(this.base[i], this.middle, angle, out);
      for (let axis = 0; axis < 2; axis++) out[axis] += noise * this.offset[i][axis];
      return out;
    }

    /** The point nearest to a place, and how far it is. */
    nearest(place, noise, angle) {
      let best = -1, least = Infinity;
      for (let i = 0; i < this.count; i++) {
        const [x, y] = this.at(i, noise, angle), away = Math.hypot(x - place[0], y - place[1]);
        if (away < least) [best, least] = [i, away];
      }
      return [best, least];
    }
  }

  // ---- The link --------------------------------------------------------------------------------

  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  /** Points in the box of one's own, each coordinate as two digits of base 64. */
  function packed(points, { low, high }) {
    const two = (value, axis) => {
      const whole = Math.round((value - low[axis]) / (high[axis] - low[axis]) * 4095);
      const bounded = Math.min(Math.max(whole, 0), 4095);
      return DIGITS[bounded >> 6] + DIGITS[bounded & 63];
    };
    return points.map(([x, y]) => two(x, 0) + two(y, 1)).join("");
  }

  function unpacked(text, { low, high }) {
    if (text.length % 4 || [...text].some((digit) => !DIGITS.includes(digit)))
      throw new RangeError("its points cannot be read");
    if (text.length > 4 * MOST_POINTS) throw new RangeError(`it has more than ${MOST_POINTS} points`);
    const value = (at, axis) => {
      const whole = DIGITS.indexOf(text[at]) * 64 + DIGITS.indexOf(text[at + 1]);
      return low[axis] + whole / 4095 * (high[axis] - low[axis]);
    };
    return Array.from({ length: text.length / 4 }, (_, i) => [value(4 * i, 0), value(4 * i + 2, 1)]);
  }

  const number = (name, text, low, high, whole) => {
    const value = text.trim() === "" ? NaN : Number(text);
    if (!(value >= low && value <= high) || (whole && value !== Math.round(value)))
      throw new RangeError(`${name} must be a ${whole ? "whole " : ""}number from ${low} to ${high}, got “${text.slice(0, 30)}”`);
    return value;
  };
  const oneOf = (name, text, names) => {
    if (!names.includes(text))
      throw new RangeError(`${name} must be ${names.slice(0, -1).join(", ")} or ${names.at(-1)}, got “${text.slice(0, 30)}”`);
    return text;
  };

  /** Labels as index and sign: 12p.17m. */
  function readLabels(text, count) {
    const labels = new Map();
    for (const part of text ? text.split(".") : []) {
      const found = /^(\d{1,5})([pm])$/.exec(part);
      if (!found || Number(found[1]) >= count) throw new RangeError(`there is no label “${part.slice(0, 30)}”`);
      labels.set(Number(found[1]), found[2] === "p" ? 1 : -1);
    }
    return labels;
  }

  /** Settings, labels (Map) and drawn points as the fragment of a link. */
  function toFragment(settings, labels, drawn, box) {
    const parts = Object.entries(settings).map(([name, value]) =>
      `${name}=${typeof value === "boolean" ? Number(value) : value}`);
    parts.push(`labels=${[...labels].map(([i, label]) => i + (label > 0 ? "p" : "m")).join(".")}`);
    if (settings.data === "own") parts.push(`points=${packed(drawn, box)}`);
    return parts.join("&");
  }

  /**
   * What a fragment says: settings (those it leaves out are the data's own), labels (null if it says
   * nothing about them) and drawn points. Throws a RangeError whose message says what is wrong.
   */
  function fromFragment(fragment, { scenes: all, sliders, rules, speeds }, settingsOf) {
    const given = new Map();
    for (const part of fragment.split("&")) {
      const at = part.indexOf("=");
      if (at < 1) throw new RangeError(`“${part.slice(0, 30)}” is no setting`);
      if (given.has(part.slice(0, at))) throw new RangeError(`${part.slice(0, at)} is given twice`);
      given.set(part.slice(0, at), decoded(part.slice(at + 1)));
    }
    const take = (name) => {
      const text = given.get(name);
      given.delete(name);
      return text;
    };
    const data = oneOf("data", take("data") ?? Object.keys(all)[0], Object.keys(all));
    const rule = given.has("readout_rule") ? oneOf("readout_rule", take("readout_rule"), Object.keys(rules)) : undefined;
    const settings = settingsOf(data, rule), labels = take("labels"), points = take("points");
    const drawn = data === "own" && points ? unpacked(points, all.own) : [];
    if (given.has("seed")) settings.seed = number("seed", take("seed"), 0, 2 ** 32 - 1, true);
    for (const slider of sliders) {
      const { name, low, first, whole } = slider, high = name === "noise" ? all[data].most_noise : slider.high;
      if (!given.has(name)) continue;
      const text = take(name);
      settings[name] = first !== null && text === first ? first : number(name, text, low, high, whole);
    }
    for (const name of ["recycle", "drift"]) if (given.has(name)) settings[name] = oneOf(name, take(name), ["0", "1"]) === "1";
    if (given.has("speed")) settings.speed = Number(oneOf("speed", take("speed"), speeds.map(String)));
    if (settings.readout_rule === "gated" && settings.readout_rate === "running_mean")
      throw new RangeError("readout_rule=gated needs a readout_rate that is a number");
    if (given.size) throw new RangeError(`there is no setting “${[...given.keys()][0].slice(0, 30)}”`);
    const count = data === "own" ? drawn.length : all[data].points;
    return { settings, drawn, labels: labels === undefined ? null : readLabels(labels, count) };
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      throw new RangeError(`“${text.slice(0, 30)}” cannot be read`);
    }
  }

  return { MOST_POINTS, generator, turned, Points, toFragment, fromFragment };
})();
