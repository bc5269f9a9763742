// The circuit in JavaScript: the rules of circuits/rules.py one by one, and a circuit that runs and
// learns by them as circuits/reference.py does, step by step, in double precision.
//
// Shapes: x (n), h (m), u (k), V (k x m), W (m x n), b (m), z and y (r), w (r x m); matrices row by
// row in Float64Arrays. Nothing in here makes an object or an array while a presentation runs.
const circuitModel = (() => {
  "use strict";

  const HUGE_RATE = 1e3; // settled rates have norm one at most; rates above this will not come back

  /** What follows from a circuit's parameters and lift, under the names that are used here. */
  function derived(given) {
    const m = given.n_tiles, R = given.radius;
    const alpha = 1 - given.tile_radius ** 2 / (2 * R ** 2);
    const kappa = given.initial_weight === "auto" ? 2 / m : given.initial_weight;
    const constant = given.gain === "auto" ? m / (1 - alpha) : given.gain;
    const gain = given.gain === "control" ? null : constant;
    return {
      m, k: given.n_interneurons, r: given.n_readouts, n: given.center.length + 1,
      center: given.center, R, alpha, root: Math.sqrt(alpha), kappa, gain,
      floor: gain === null ? given.FLOOR * kappa * (1 - alpha) : 0, spark: given.SPARK,
      least: (given.recruit_below + given.TIE) * (1 - alpha), recycle: given.recycle,
      steps: given.steps_per_presentation, reset: given.reset,
      dt: given.dt, tauH: given.tau_h, tauU: given.tau_u, tauV: given.tau_V,
      mu: given.mu, tanh: given.readout === "tanh", gated: given.readout_rule === "gated",
      clamp: given.clamp_labels, eta: given.learning_rate,
      rate: given.readout_rate === "running_mean" ? null : given.readout_rate,
    };
  }

  /** Lift a point onto the unit sphere: x = (s - c, sqrt(R^2 - |s - c|^2)) / R. */
  function lift(p, point, x) {
    const d = p.n - 1;
    let square = 0;
    for (let i = 0; i < d; i++) {
      const offset = point[i] - p.center[i];
      square += offset * offset;
      x[i] = offset / p.R;
    }
    x[d] = Math.sqrt(Math.max(p.R * p.R - square, 0)) / p.R;
  }

  /** One row of the drive: (W x)_i - sqrt(alpha) b_i. */
  function driveOf(p, W, b, x, i) {
    let sum = 0;
    for (let j = 0; j < p.n; j++) sum += W[i * p.n + j] * x[j];
    return sum - p.root * b[i];
  }

  /** Drive, fixed through a presentation: a = W x - sqrt(alpha) b. */
  function drive(p, W, b, x, a) {
    for (let i = 0; i < p.m; i++) a[i] = driveOf(p, W, b, x, i);
  }

  /** The size of a drive, A = |[a]+|, or 0 where it does not exceed the floor and nothing counts. */
  function measured(p, a) {
    let power = 0;
    for (let i = 0; i < p.m; i++) if (a[i] > 0) power += a[i] * a[i];
    const size = Math.sqrt(power);
    return size > p.floor ? size : 0;
  }

  /**
   * How a presentation with the drive a starts, `last` being the A of the one before it. Under gain
   * control the drive divides the step of h, and u and V start at its scale: gain = 1/A,
   * scale = sqrt(A), ratio = sqrt(A/last). With a constant gain all are 1.
   */
  function start(p, a, last, begin) {
    const size = measured(p, a);
    begin.size = size;
    begin.gain = p.gain === null ? (size > 0 ? 1 / size : 0) : p.gain;
    begin.scale = p.gain === null ? Math.sqrt(size) : 1;
    begin.ratio = p.gain === null && size > 0 ? Math.sqrt(size / last) : 1;
    begin.covered = p.gain === null && size === 0 ? 0 : 1;
    begin.last = p.gain === null && size > 0 ? size : last;
  }

  /** Unit vector along which u starts: u_j ~ 1 + j/k. */
  function restDirection(k) {
    const direction = Float64Array.from({ length: k }, (_, j) => 1 + j / k);
    const length = Math.sqrt(direction.reduce((sum, value) => sum + value * value, 0));
    return direction.map((value) => value / length);
  }

  /** The size at which u rests: 1 under gain control, in units of the root of the drive. */
  const restSize = (p) => (p.gain === null ? 1 : Math.sqrt(2 / p.gain));

  /**
   * h, u and V as a presentation starts: at rest, |h| = 1, V = u h', or where the one before it
   * ended, with a spark of what they are at rest. Only tiles in use rest above zero.
   */
  function begun(p, state, used, direction, begin) {
    const { h, u, V } = state, rest = 1 / Math.sqrt(p.m), size = restSize(p);
    for (let j = 0; j < p.k; j++) {
      const restU = begin.scale * (direction[j] * size);
      for (let i = 0; i < p.m; i++) {
        const at = j * p.m + i, restV = used[i] ? restU * rest : 0;
        V[at] = p.reset ? restV : Math.max(begin.ratio * V[at], p.spark * restV);
      }
      u[j] = p.reset ? restU : Math.max(begin.ratio * u[j], p.spark * restU);
    }
    for (let i = 0; i < p.m; i++) h[i] = begin.covered * (p.reset ? (used[i] ? rest : 0) : h[i]);
  }

  /**
   * One step, in place; all three move from the old values, and are then rectified.
   *   h <- [h + gamma_h (a - V'u)]+   u <- [u + gamma_u (V h - u)]+   V <- [V + gamma_V (u h' - V)]+
   * `excitation` is room for V h.
   */
  function step(p, state, a, gain, excitation) {
    const { h, u, V } = state, { m, k } = p;
    const gammaH = gain * p.dt / p.tauH, gammaU = p.dt / p.tauU, gammaV = p.dt / p.tauV;
    for (let j = 0; j < k; j++) excitation[j] = 0;
    for (let i = 0; i < m; i++) {
      const rate = h[i];
      let inhibition = 0;
      for (let j = 0, at = i; j < k; j++, at += m) {
        const v = V[at], moved = v + gammaV * (u[j] * rate - v);
        inhibition += u[j] * v;
        excitation[j] += v * rate;
        V[at] = moved > 0 ? moved : 0;
      }
      const moved = rate + gammaH * (a[i] - inhibition);
      h[i] = moved > 0 ? moved : 0;
    }
    for (let j = 0; j < k; j++) {
      const moved = u[j] + gammaU * (excitation[j] - u[j]);
      u[j] = moved > 0 ? moved : 0;
    }
  }

  /** Where the steps lead: h = [a]+/|[a]+|; returns |[a]+|, which is |u|^2. */
  function fixedPoint(p, a, h) {
    const size = measured(p, a);
    for (let i = 0; i < p.m; i++) h[i] = size > 0 && a[i] > 0 ? a[i] / size : 0;
    return size;
  }

  /**
   * Readout rates y = clip(mu w.h + z, -1, 1), or tanh of the same. The gated rule has w.h/sum(h) in
   * the place of w.h; a label may clamp y.
   */
  function answer(p, w, h, z, y) {
    let total = 1;
    if (p.gated) {
      total = 0;
      for (let i = 0; i < p.m; i++) total += h[i];
    }
    for (let c = 0; c < p.r; c++) {
      let sum = 0;
      for (let i = 0; i < p.m; i++) sum += w[c * p.m + i] * h[i];
      const net = p.mu[c] * (total > 0 ? sum / total : 0) + z[c];
      const rate = p.tanh ? Math.tanh(net) : Math.min(Math.max(net, -1), 1);
      y[c] = p.clamp ? z[c] + (1 - Math.abs(z[c])) * rate : rate;
    }
  }

  /** A circuit that learns. All tiles are idle until points recruit them. */
  class Circuit {
    constructor(given) {
      const p = this.p = derived(given);
      const { m, k, n, r } = p;
      const array = (length) => new Float64Array(length);
      Object.assign(this, {
        W: array(m * n), b: array(m), w: array(r * m), h: array(m), u: array(k), V: array(k * m),
        x: array(n), a: array(m), y: array(r),
        inUse: 0, // tiles are recruited in the order of their numbers
        used: new Uint8Array(m), // in use and not lesioned
        lesioned: new Uint8Array(m),
        recruited: new Int32Array(m).fill(-1),
        lastSize: 1, learned: 0, change: 0, diverged: false,
        begin: { size: 0, gain: 0, scale: 0, ratio: 1, covered: 0, last: 1 },
        direction: restDirection(k),
      });
      this.u.set(this.direction.map((value) => value * restSize(p)));
      this.room = { excitation: array(k), h: array(m), u: array(k), a: array(m), x: array(n), z: array(r), y: array(r) };
    }

    /** Take over other rates, gains and numbers of steps. Sizes, radius and kappa must be the same. */
    retune(given) {
      Object.assign(this.p, derived(given));
    }

    /**
     * Present a point with labels z (-1, 0, +1 per readout): recruit, settle, answer, learn. A trace,
     * if there is one, gets h, u, V as they start and after every step. Rates that diverge are said
     * (`diverged`), and nothing is learned from them.
     */
    present(point, z, trace = null) {
      const { p, x, a, begin, room } = this;
      if (this.diverged) for (const name of ["h", "u", "V"]) this[name].fill(0); // nothing to carry over
      lift(p, point, x);
      drive(p, this.W, this.b, x, a);
      for (let i = 0; i < p.m; i++) if (this.lesioned[i]) a[i] = 0;
      this.recruit();
      start(p, a, this.lastSize, begin);
      this.lastSize = begin.last;
      begun(p, this, this.used, this.direction, begin);
      if (trace) trace.keep(0, this);
      for (let s = 1; s <= p.steps; s++) {
        if (s === p.steps) {
          room.h.set(this.h);
          room.u.set(this.u);
        }
        step(p, this, a, begin.gain, room.excitation);
        if (trace) trace.keep(s, this);
      }
      this.change = relativeChange(room.h, this.h, room.u, this.u);
      this.diverged = !(largest(this.h) < HUGE_RATE && largest(this.u) < HUGE_RATE);
      answer(p, this.w, this.h, z, this.y);
      if (!this.diverged) this.learn();
    }

    /**
     * Let a point that no tile answers start the next idle one or, to recycle, move the least used:
     * W_i = kappa x, b_i = kappa sqrt(alpha); a tile that moves forgets its w. A tile's answer is
     * 1 - (distance/rho)^2. Lesioned tiles neither answer nor are recruited.
     */
    recruit() {
      const { p, a, b, x } = this;
      for (let i = 0; i < p.m; i++) if (a[i] * p.root > p.least * b[i] && a[i] > p.floor) return;
      let tile = this.inUse;
      if (tile === p.m) {
        tile = -1;
        for (let i = 0; p.recycle && i < p.m; i++)
          if (!this.lesioned[i] && (tile < 0 || b[i] < b[tile])) tile = i;
        if (tile < 0) return;
      } else this.inUse += 1;
      for (let j = 0; j < p.n; j++) this.W[tile * p.n + j] = p.kappa * x[j];
      b[tile] = p.kappa * p.root;
      if (p.recycle) for (let c = 0; c < p.r; c++) this.w[c * p.m + tile] = 0;
      this.used[tile] = 1;
      this.recruited[tile] = this.learned;
      a[tile] = driveOf(p, this.W, b, x, tile);
    }

    /**
     * One presentation's learning, from the settled h, where tiles are not lesioned:
     * w <- w + rate (y h - w), gated w + rate h (y - w); W <- W + eta (h x' - W);
     * b <- b + eta (sqrt(alpha) h - b).
     */
    learn() {
      const { p, h, x, y, W, b, w } = this;
      this.learned += 1;
      const rate = p.rate === null ? 1 / this.learned : p.rate;
      for (let i = 0; i < p.m; i++) {
        if (this.lesioned[i]) continue;
        for (let c = 0; c < p.r; c++) {
          const at = c * p.m + i;
          w[at] += p.gated ? rate * h[i] * (y[c] - w[at]) : rate * (y[c] * h[i] - w[at]);
        }
        for (let j = 0; j < p.n; j++) W[i * p.n + j] += p.eta * (h[i] * x[j] - W[i * p.n + j]);
        b[i] += p.eta * (p.root * h[i] - b[i]);
      }
    }

    /** Take a tile out for ever: h = 0, never recruited again, its synapses learn no more. */
    lesion(tile) {
      this.lesioned[tile] = 1;
      this.used[tile] = 0;
      this.h[tile] = 0;
      for (let j = 0; j < this.p.k; j++) this.V[j * this.p.m + tile] = 0;
    }

    /** What the first readout answers to a point when all has settled: the closed form. */
    answerTo(point) {
      const { p, room } = this;
      lift(p, point, room.x);
      drive(p, this.W, this.b, room.x, room.a);
      for (let i = 0; i < p.m; i++) if (this.lesioned[i]) room.a[i] = 0;
      fixedPoint(p, room.a, room.h);
      answer(p, this.w, room.h, room.z, room.y);
      return room.y[0];
    }

    /** Where a tile looks, among the data: W_i put back from the sphere. */
    centerOf(tile, out) {
      const { n, center, R } = this.p, { W } = this;
      let square = 0;
      for (let j = 0; j < n; j++) square += W[tile * n + j] ** 2;
      const length = Math.sqrt(square) || 1;
      for (let j = 0; j < n - 1; j++) out[j] = center[j] + R * W[tile * n + j] / length;
      return out;
    }
  }

  /** Room for h, u and V as a presentation starts and after each of at most so many steps. */
  class Trace {
    constructor(p) {
      this.p = p;
      this.steps = p.steps;
      const array = (length) => new Float64Array((p.steps + 1) * length);
      Object.assign(this, { h: array(p.m), u: array(p.k), V: array(p.k * p.m) });
    }

    keep(s, state) {
      for (const name of ["h", "u", "V"]) this[name].set(state[name], s * state[name].length);
    }
  }

  function largest(values) {
    let most = 0;
    for (let i = 0; i < values.length; i++) {
      if (!(values[i] <= most)) most = values[i];
      if (most !== most) return NaN;
    }
    return most;
  }

  function distance(one, other) {
    let square = 0;
    for (let i = 0; i < one.length; i++) square += (one[i] - (other ? other[i] : 0)) ** 2;
    return Math.sqrt(square);
  }

  /** By how much the last step moved the rates: the larger of |dh|/|h| and |du|/|u|. */
  function relativeChange(hBefore, h, uBefore, u) {
    const size = distance(h), moved = distance(h, hBefore);
    return size === 0 ? moved : Math.max(moved / size, distance(u, uBefore) / distance(u));
  }

  return { derived, lift, drive, start, begun, step, fixedPoint, answer, restDirection, Circuit, Trace };
})();
