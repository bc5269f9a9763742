"""Parameters of the circuit: accepted and refused values, units, TOML."""

from __future__ import annotations

import os
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuits import CircuitParameters
from circuits.errors import ParameterError
from tests.refusing import refused, table


@table(
    ("values", "words"),
    [
        ({"n_tiles": 0}, "n_tiles .* 1, got 0"),
        ({"n_interneurons": 0, "n_readouts": -1}, "n_interneurons .* 1, got 0.*n_readouts .*-1"),
        ({"n_tiles": 2.5}, "n_tiles .*integer.*got 2.5"),
        ({"n_tiles": True}, "n_tiles .*got True"),
        ({"n_tiles": 10**9}, "n_tiles=1000000000 with.*37.3 GiB"),
        ({"n_tiles": 10**5000}, "n_tiles .*2147483647, got"),
        ({"n_readouts": 10**9}, "n_readouts=1000000000.*298 GiB"),
        ({"steps_per_presentation": 2**31}, "steps_per_presentation .*2147483647"),
        ({"tile_radius": 0}, "tile_radius .* 0, got 0"),
        ({"tile_radius": np.nan}, "tile_radius .*finite.*got nan"),
        ({"tile_radius": 10**400}, "tile_radius .*number, got"),
        ({"learning_rate": 1.01}, "learning_rate .* 1, got 1.01"),
        ({"mu": (1.0, 2.0)}, "2 values for n_readouts=1"),
        ({"mu": -1.0}, "mu .* 0, got -1"),
        ({"mu": np.inf}, "mu .*finite.*got inf"),
        ({"mu": {1.0, 2.0}, "n_readouts": 2}, "mu .*one per readout"),
        ({"mu": np.ma.array([1.0], mask=True)}, "mu .*one per readout"),
        ({"mu": "x" * 10**6}, "mu .*one number"),
        ({"readout": "sigmoid"}, "readout .*'clip' or 'tanh', got 'sigmoid'"),
        ({"readout_rate": 1.01}, "readout_rate .*from 0 to 1, got 1.01"),
        ({"readout_rate": "mean"}, "readout_rate .*running_mean.*got 'mean'"),
        ({"readout_rule": "gated"}, "readout_rule='gated' .*readout_rate"),
        ({"gain": 0}, "gain .*above 0, got 0"),
        ({"gain": None}, "gain .*'control', 'auto'.*got None"),
        ({"initial_weight": "some"}, "initial_weight .*'auto'"),
        ({"recruit_below": 1.0}, "recruit_below .* 1, got 1"),
        ({"recruit_below": -0.1}, "recruit_below .* 0, got -0.1"),
        ({"tiles": "random"}, "tiles .*got 'random'"),
        ({"recycle": True, "tiles": "first"}, "recycle.*tiles='first'"),
        ({"reset": "perhaps"}, "reset .*'perhaps'"),
        ({"tau_u": "1 ms"}, "tau_u and tau_V .*got 1 ms"),
        ({"dt": "1.01 ms"}, "dt .*tau_V=1 ms, got 1.01 ms"),
        ({"dt": "3 ms", "tau_V": "5 ms", "tau_u": "2 ms"}, "dt .*tau_u=2 ms.*got 3 ms"),
        ({"tau_h": 8}, "tau_h .*got 8"),
        ({"tau_h": "8 mV"}, "tau_h .*got '8 mV'"),
        ({"tau_h": "8" * 5000 + " ms"}, "tau_h .*finite.*got inf"),
        ({"tau_h": datetime(2020, 1, 1)}, "tau_h .*time with a unit"),
        ({"tau_V": "-2 ms"}, "tau_V .*greater than 0"),
        ({"dt": "1e-400 s"}, "dt .*greater than 0"),
        ({"self": 1}, "'self'"),
        ({"x" * 10**6: 1}, "'xxx"),
        (dict.fromkeys("abcdefgh", 1), "'a'; .*'b'; .*'c'; and 5 more"),
    ],
)
def test_values_that_cannot_work(values, words):
    refused(lambda: CircuitParameters(**values), words, ParameterError)
    refused(lambda: CircuitParameters().replace(**values), words, ParameterError)


def test_the_bounds_themselves_are_allowed():
    least = {"n_tiles": 1, "n_interneurons": 1, "steps_per_presentation": 1, "dt": "1 ms"}
    for share in (0, 1):
        CircuitParameters(learning_rate=share, readout_rate=share, recruit_below=0, mu=0, **least)


def test_brian2_units():
    from brian2 import ms, mV, second

    parameters = CircuitParameters(tau_h=10 * ms, dt=0.5 * ms, tau_u=0.1 * second, tau_V="2 ms")
    assert parameters.tau_h == 10 * ms
    assert parameters.dt == 0.5 * ms
    assert parameters.tau_u_ == 0.1
    assert (parameters.tau_u, parameters.tau_V) == (100 * ms, 2 * ms)
    for wrong in (10 * mV, [1, 2] * ms):
        refused(lambda tau=wrong: CircuitParameters(tau_h=tau), "tau_h .*a time", ParameterError)


def test_frozen_readable_and_of_any_number_type():
    parameters = CircuitParameters(mu=5.0)
    with pytest.raises(Exception, match="frozen"):
        parameters.mu = 3.0
    assert "tau_h='2.5 ms'" in repr(parameters)
    assert eval(repr(parameters)) == parameters
    assert parameters.replace(mu=6.0).mu == 6.0
    found = CircuitParameters(
        n_tiles=np.int64(7), tile_radius=np.float32(0.5), mu=pd.Series([1.0, 2.0]), n_readouts=2.0
    )
    assert found == CircuitParameters(n_tiles=7, tile_radius=0.5, mu=(1.0, 2.0), n_readouts=2)


def test_toml_is_written_and_read(tmp_path):
    path = tmp_path / "circuit.toml"
    for values in (
        {"n_readouts": 2, "mu": (1.5, 1e-3), "readout": "tanh", "readout_rate": 0.1},
        {"dt": "0.3 ms", "tau_h": f"{1 / 3!r} s", "gain": 12.5, "reset": False},
        {"tau_h": "1.7e308 s"},
        {"tau_h": "5e-324 s"},
    ):
        parameters = CircuitParameters(**values)
        parameters.to_toml(path)
        assert CircuitParameters.from_toml(path) == parameters
    assert [file.name for file in tmp_path.iterdir()] == ["circuit.toml"]
    for place in (tmp_path, "a\0b", None, tmp_path / ("n" * 300)):
        refused(lambda place=place: parameters.to_toml(place))


@table(
    ("content", "words"),
    [
        ("n_tiles = 3".encode("utf-16"), "utf-8"),
        (b"n_tiles = = 3", "TOML"),
        (b"[n_tiles]\na = 1", "n_tiles .*got {'a': 1}"),
        (b"n_tiles = " + b"1" * 5000, "TOML"),
        (b"mu = " + b"[" * 5000, "TOML.*recursion"),
    ],
)
def test_toml_that_cannot_be_read(tmp_path, content, words):
    path = tmp_path / "circuit.toml"
    path.write_bytes(content)
    refused(lambda: CircuitParameters.from_toml(path), words, ParameterError)


def test_paths_that_are_no_toml_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for path, words in (
        (tmp_path / "none.toml", "no file .*none.toml"),
        (tmp_path, "a folder"),
        (tmp_path / ("n" * 300), "no file .*nnn"),
        ("a\0b", "a.*b"),
        (3.5, "3.5"),
        ("/dev/zero", "/dev/zero .*regular"),
        (tmp_path / "pipe.toml", "pipe.toml .*regular"),
    ):
        refused(lambda path=path: CircuitParameters.from_toml(path), words, ParameterError)


KEYS = st.sampled_from([*CircuitParameters().as_dict(), "self", "x", "n_tiles.a", '""'])
PLAIN = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["true", "[]", "[1.0, 2]", "{}", '"8 ms"', "'auto'", "1979-05-27", "0x1F"]),
    st.text(max_size=8),
)
TOML = st.lists(st.tuples(KEYS, PLAIN), max_size=4).map(
    lambda pairs: "\n".join(f"{key} = {value}" for key, value in pairs).encode("utf-8", "replace")
)


@settings(max_examples=200, database=None)
@given(content=st.one_of(TOML, st.binary(max_size=60)))
def test_any_toml_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content)
    try:
        parameters = CircuitParameters.from_toml(path)
    except ParameterError:
        refused(lambda: CircuitParameters.from_toml(path))
        return
    parameters.to_toml(path)
    assert CircuitParameters.from_toml(path) == parameters
