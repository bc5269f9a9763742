"""Parameters of the spiking twin: units, checks, TOML."""

from __future__ import annotations

import pytest
from brian2 import Hz, kHz, ms, second

from circuits import SpikingParameters
from circuits.errors import ParameterError
from circuits.parameters import format_hertz, hertz


def test_durations_and_rates_have_units():
    s = SpikingParameters(presentation=500 * ms, window="0.25 s", rate_h=50 * Hz, rate_u="0.06 kHz")
    assert (s.n_steps, s.window_steps) == (1000, 500)
    assert s.rate_h_ == 50.0
    assert s.rate_u_ == pytest.approx(60.0, rel=1e-15)
    assert s.quantity("rate_h") == 50 * Hz
    assert s.quantity("tau_V") == 0.05 * second


@pytest.mark.parametrize("value", [85.0, 1 / 3, 1e-7, 123456.789])
def test_rates_as_text_read_back_exactly(value):
    assert hertz(format_hertz(value)) == value


def test_rates_in_other_units_and_what_is_none():
    assert hertz(2 * kHz) == 2000.0
    for wrong in (85, "85", "85 ms", 3 * ms, [1] * 2 * Hz):
        with pytest.raises(ValueError, match=r"must be (a|one) rate"):
            hertz(wrong)


def test_noise_keeps_several_regular_cells_apart_and_only_them():
    assert SpikingParameters().sigma == 0
    assert SpikingParameters(cells=2).sigma == 1
    assert SpikingParameters(cells=2, neuron="escape").sigma == 0
    assert SpikingParameters(cells=2, noise=0.5).sigma == 0.5
    assert [SpikingParameters(**v).random for v in ({}, {"cells": 2}, {"neuron": "escape"})] == [
        *(False, True, True)
    ]


REFUSED = [
    ({"dt": "4 ms"}, "dt must not exceed tau_e=3 ms, got 4 ms"),
    ({"presentation": "250.2 ms"}, "presentation must be a whole number of steps of dt=0.5 ms"),
    ({"window": "251 ms"}, "window must not exceed presentation=250 ms, got 251 ms"),
    ({"window": "0.1 ms"}, "window must be a whole number of steps"),
    ({"strength": 0.5}, "strength must exceed 1/slope=0.5, got 0.5"),
    ({"rate_h": "300 Hz"}, "rate_h is too high for dt=0.5 ms"),
    ({"rate_u": "600 Hz"}, "rate_u is too high for dt=0.5 ms"),
    ({"rate_y": "1100 Hz"}, "rate_y is too high for dt=0.5 ms"),
    ({"rate_h": 85}, "rate_h must be a rate with a unit such as 90"),
    ({"noise": -1}, "noise must be 'auto' or a finite number from 0, got -1"),
    ({"neuron": "escape", "noise": 1.0}, "neuron='escape' fires at random by itself"),
    ({"cells": 0}, "cells must be greater than or equal to 1, got 0"),
    ({"neuron": "lif"}, "neuron must be 'if' or 'escape', got 'lif'"),
    ({"V_rule": True}, "V_rule must be 'spikes', 'fade' or 'freeze', got True"),
    ({"tau_x": "1 ms"}, "there is no parameter 'tau_x'"),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSED)
def test_impossible_values_are_refused_in_one_sentence(changes, sentence):
    with pytest.raises(ParameterError) as caught:
        SpikingParameters(**changes)
    assert sentence in str(caught.value)


def test_toml_and_back(tmp_path):
    s = SpikingParameters(neuron="escape", cells=4, rate_h="50 Hz", tau_V="40 ms")
    s.to_toml(tmp_path / "spiking.toml")
    assert SpikingParameters.from_toml(tmp_path / "spiking.toml") == s
    assert 'rate_h = "50 Hz"' in (tmp_path / "spiking.toml").read_text()
    assert s.replace(cells=1).cells == 1
    assert repr(s).startswith("SpikingParameters(neuron='escape', cells=4")
