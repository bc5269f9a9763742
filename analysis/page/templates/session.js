// A session of the playground: a circuit, the stream it gets, and how well it answers. Nothing in here
// touches the page.
const playing = (() => {
  "use strict";

  const RECENT = 200; // points without a label over which answers are counted
  const SAMPLES = 500; // of the share of right answers that are kept

  /** Settings of some data: its own, or those that another readout rule wants. */
  function settingsOf(data, name, rule) {
    const own = data.scenes[name].settings, { seed, drift, speed } = data.start;
    const other = rule && rule !== own.readout_rule ? { ...data.rules[rule], readout_rule: rule } : {};
    return { data: name, seed, ...own, ...other, drift, speed };
  }

  class Session {
    constructor(data, settings, drawn = [], labels = null) {
      Object.assign(this, { data, settings, scene: data.scenes[settings.data] });
      this.points = new scenes.Points(settings.data, this.scene, settings.seed, drawn);
      this.labels = labels ?? new Map(this.scene.labels.map(([x, y, label]) => [
        this.points.nearest([x, y], settings.noise, 0)[0], label,
      ]));
      this.point = [0, 0];
      this.z = new Float64Array(1);
      this.restart();
    }

    /** The circuit's parameters, as circuit.js takes them. */
    get given() {
      return { ...this.scene.circuit, ...this.settings, mu: [this.settings.mu] };
    }

    /** Begin again, with the same stream; points with labels come first. */
    restart() {
      this.circuit = new circuitModel.Circuit(this.given);
      this.random = scenes.generator(this.settings.seed, 1);
      this.queue = [...this.labels.keys()];
      this.angle = 0;
      this.shown = -1;
      this.answers = this.points.base.map(() => null); // the last one to each point
      this.recent = { good: new Uint8Array(RECENT), count: 0, sum: 0 };
      this.history = { t: [], share: [], stride: 1 };
    }

    /** Take over settings that only change rates. */
    retune() {
      this.circuit.retune(this.given);
    }

    get time() {
      return this.circuit.learned;
    }

    /** Present the next point: one that just got a label, or any. */
    next(trace = null) {
      const { points, circuit, settings } = this;
      const i = this.queue.length ? this.queue.shift() : Math.floor(points.count * this.random.uniform());
      if (settings.drift) this.angle += 2 * Math.PI * this.data.driftSpeed;
      points.at(i, settings.noise, this.angle, this.point);
      this.z[0] = this.labels.get(i) ?? 0;
      this.shown = i;
      circuit.present(this.point, this.z, trace);
      if (circuit.diverged) return false; // that was no answer
      this.answers[i] = circuit.y[0];
      if (!this.z[0]) this.count(points.classes[i] ? circuit.y[0] * points.classes[i] > 0 : circuit.y[0] !== 0);
      return true;
    }

    /** Whether an answer was right, among the last ones; how that went is kept at ever larger steps. */
    count(good) {
      const { recent, history } = this, at = recent.count % RECENT;
      recent.sum += good - (recent.count < RECENT ? 0 : recent.good[at]);
      recent.good[at] = good;
      recent.count += 1;
      if (this.time % history.stride) return;
      history.t.push(this.time);
      history.share.push(this.share);
      if (history.t.length < SAMPLES) return;
      for (const name of ["t", "share"]) history[name] = history[name].filter((_, k) => k % 2);
      history.stride *= 2;
    }

    /** The share of right answers, or NaN. */
    get share() {
      return this.recent.count ? this.recent.sum / Math.min(this.recent.count, RECENT) : NaN;
    }

    /** Give a point a label, or take it away if it has that one. */
    label(i, label) {
      this.queue = this.queue.filter((other) => other !== i);
      if (this.labels.get(i) === label) this.labels.delete(i);
      else {
        this.labels.set(i, label);
        this.queue.push(i);
      }
    }

    draw(x, y) {
      if (this.points.count >= scenes.MOST_POINTS) return;
      this.points.add(x, y, 0);
      this.answers.push(null);
    }

    get drawn() {
      return this.settings.data === "own" ? this.points.base : [];
    }

    get fragment() {
      return scenes.toFragment(this.settings, this.labels, this.drawn, this.data.scenes.own);
    }
  }

  return { Session, settingsOf };
})();
