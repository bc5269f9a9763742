"""
A Neural Network for Semi-Supervised Learning on Manifolds
==========================================================

The circuit of Genkin, Sengupta and Chklovskii in plain Brian2, on two interleaved moons. Two
points have a label. A point is presented for S steps of dt, in which h, u and V settle. Then the
readout y answers, the slow synapses W and w and the bias b learn, and the next point follows.

    python docs/minimal_circuit.py [number of points]

The paper leaves some things open. Here points are lifted onto a sphere, because a scalar product
measures nearness only between vectors of equal length; tiles start on the first points; h, u and V
start every presentation at rest, with unequal u; and the gain is m/(1 - alpha).
"""

import sys

from brian2 import *

# Data: two moons, lifted to x with |x| = 1; z is a label for one point of each moon, else 0
T = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
rng = np.random.default_rng(1)
moon, angle = rng.choice([-1, 1], T), rng.uniform(0, pi, T)
points = np.transpose([cos(angle) + 0.5 * moon, moon * (0.25 - sin(angle))])
points += rng.normal(0, 0.05, points.shape)
R, rho = 3.0, 0.4  # radius of the sphere, radius of a tile
lifted = np.column_stack([points, sqrt(R**2 - (points**2).sum(axis=1))]) / R
labels = np.zeros(T)
for side in (-1, 1):
    labels[np.flatnonzero((moon == side) & (np.arange(T) >= T // 5))[0]] = side

# Parameters: the step sizes of the paper are gamma_h = gain dt/tau_h, gamma_u = dt/tau_u, ...
n, m, k = 3, 40, 4  # inputs, tiles, interneurons
S, step = 200, 2**-10 * second  # a presentation is S steps
tau_h, tau_u, tau_V = 8 * ms, 50 * ms, 2 * ms
alpha = 1 - rho**2 / (2 * R**2)  # similarity of two points at distance rho
gain = m / (1 - alpha)
eta, mu = 0.005, 1000
kappa = 2 / m  # size of W at the start

# At time 0 the first point is loaded, and there is nothing yet to learn from
shown = TimedArray(np.vstack([lifted, np.zeros(n)]), dt=S * step)
label = TimedArray(np.append(labels, 0), dt=S * step)
slow_rate = TimedArray(np.append(0, np.full(T, eta)), dt=S * step)
mean_rate = TimedArray(np.append(0, 1 / np.arange(1, T + 1)), dt=S * step)  # 1/(t + 1)

defaultclock.dt = step
presentation = Clock(dt=S * step)
inputs = NeuronGroup(n, "x : 1", clock=presentation)
tiles = NeuronGroup(m, """dh/dt = gain*(a - inhibition)/tau_h : 1
                          a : 1            # W x - sqrt(alpha) b
                          Wx : 1
                          inhibition : 1   # V^T u
                          b : 1""", method="euler")
interneurons = NeuronGroup(k, """du/dt = (excitation - u)/tau_u : 1
                                 excitation : 1   # V h
                                 u_rest : 1""", method="euler")
readout = NeuronGroup(1, """y : 1
                            wh : 1
                            z : 1""", clock=presentation)
feedforward = Synapses(inputs, tiles, "W : 1")
lateral = Synapses(tiles, interneurons, """dV/dt = (u_post*h_pre - V)/tau_V : 1 (clock-driven)
                                           inhibition_pre = V*u_post : 1 (summed)
                                           excitation_post = V*h_pre : 1 (summed)""",
                   method="euler")
classifier = Synapses(tiles, readout, """w : 1
                                         wh_post = w*h_pre : 1 (summed)""")
for synapses in (feedforward, lateral, classifier):
    synapses.connect()

# At every step the sums, then V, then h and u: all see the others' old values. u and V stay
# positive by themselves, as dt < tau. At each presentation the rest, in the order of the slots.
magic_network.schedule = ["start", "answer", "record", "learn", "load", "drive", "restart",
                          "sums", "lateral", "rates", "rectify", "groups", "end"]
for updater in lateral.summed_updaters.values():
    updater.when = "sums"
classifier.summed_updaters["wh_post"].when = "before_answer"
lateral.state_updater.when = "lateral"
tiles.state_updater.when = interneurons.state_updater.when = "rates"
tiles.run_regularly("h = clip(h, 0, inf)", when="rectify")


def once(group, when, code):
    group.run_regularly(code, when=when, clock=presentation)


once(readout, "answer", "y = clip(mu*wh + z, -1, 1)")
once(classifier, "learn", "w += mean_rate(t)*(y_post*h_pre - w)")
once(feedforward, "learn", "W += slow_rate(t)*(h_post*x_pre - W)")
once(tiles, "learn", "b += slow_rate(t)*(sqrt(alpha)*h - b)")
once(inputs, "load", "x = shown(t, i)")
once(readout, "load", "z = label(t)")
once(tiles, "load", "Wx = 0")
once(feedforward, "drive", "Wx_post += W*x_pre")
once(tiles, "restart", "a = Wx - sqrt(alpha)*b\nh = 1/sqrt(m)")
once(interneurons, "restart", "u = u_rest")
once(lateral, "restart", "V = u_rest_post/sqrt(m)")  # from u = V = 0 nothing would inhibit

first = np.unique(lifted, axis=0, return_index=True)[1]
feedforward.W = kappa * lifted[np.sort(first)[:m]].T.ravel()
tiles.b = kappa * sqrt(alpha)
u_direction = 1 + np.arange(k) / k
interneurons.u_rest = sqrt(2 / gain) * u_direction / np.linalg.norm(u_direction)
h = StateMonitor(tiles, "h", record=True, clock=presentation, when="record")
y = StateMonitor(readout, "y", record=True, clock=presentation, when="record")
run((T * S + 1) * step, report="text")

answers = y.y[0, 1:]
print(f"correct: {np.mean(answers[T // 2:] * moon[T // 2:] > 0):.3f} of the second half")
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.scatter(*points.T, c=answers, cmap="coolwarm", s=8)
left.scatter(*points[labels != 0].T, marker="*", s=150, color="black", label="labelled")
left.set(title="Answer y to each point", aspect="equal", xlabel="$s_1$", ylabel="$s_2$")
left.legend()
right.scatter(np.arange(T), answers, c=moon, cmap="coolwarm", s=8)
right.set(title="Answers in time, coloured by moon", xlabel="presentation t", ylabel="y")
plt.show()
