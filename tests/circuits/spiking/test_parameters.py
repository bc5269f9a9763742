"""Parameters of the spiking twin: units, checks, TOML."""

from __future__ import annotations

import pytest
from brian2 import Hz, kHz, ms

from circuits import SpikingParameters
from circuits.errors import ParameterError
from circuits.parameters import format_hertz, hertz
from tests.refusing import refused, table


def test_durations_and_rates_have_units():
    s = SpikingParameters(presentation=500 * ms, window="0.25 s", rate_h=50 * Hz, rate_u="0.06 kHz")
    assert (s.n_steps, s.window_steps) == (1000, 500)
    assert s.rate_h_ == 50.0
    assert s.rate_u_ == pytest.approx(60.0, rel=1e-15)
    assert SpikingParameters(**s.as_dict()) == s
    for value in (85.0, 1 / 3, 1e-7, 123456.789):
        assert hertz(format_hertz(value)) == value
    assert hertz(2 * kHz) == 2000.0
    for wrong in (85, "85", "85 ms", 3 * ms, [1] * 2 * Hz):
        with pytest.raises(ValueError, match="rate"):
            hertz(wrong)


def test_noise_keeps_several_regular_cells_apart_and_only_them():
    assert SpikingParameters().sigma == 0
    assert SpikingParameters(cells=2).sigma == 1
    assert SpikingParameters(cells=2, neuron="escape").sigma == 0
    assert SpikingParameters(cells=2, noise=0.5).sigma == 0.5
    assert not SpikingParameters().random
    assert SpikingParameters(cells=2).random
    assert SpikingParameters(neuron="escape").random


@table(
    ("changes", "words"),
    [
        ({"dt": "4 ms"}, "dt .*tau_e=3 ms, got 4 ms"),
        ({"presentation": "250.2 ms"}, "presentation .*dt=0.5 ms"),
        ({"window": "251 ms"}, "window .*presentation=250 ms, got 251 ms"),
        ({"window": "0.1 ms"}, "window .*whole number of steps"),
        ({"strength": 0.5}, "strength .*1/slope=0.5, got 0.5"),
        ({"rate_h": "300 Hz"}, "rate_h .*dt=0.5 ms"),
        ({"rate_u": "600 Hz"}, "rate_u .*dt=0.5 ms"),
        ({"rate_y": "1100 Hz"}, "rate_y .*dt=0.5 ms"),
        ({"rate_h": 85}, "rate_h .*90"),
        ({"noise": -1}, "noise .*from 0, got -1"),
        ({"neuron": "escape", "noise": 1.0}, "neuron='escape'"),
        ({"neuron": "lif"}, "neuron .*got 'lif'"),
        ({"V_rule": True}, "V_rule .*'spikes', 'fade' or 'freeze', got True"),
    ],
)
def test_impossible_values_are_refused(changes, words):
    refused(lambda: SpikingParameters(**changes), words, ParameterError)
