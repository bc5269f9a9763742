"""A folder of results with everything in it, and a browser to look at its page."""

from __future__ import annotations

import json

import pytest
import xarray as xr
from matplotlib.figure import Figure

from analysis.page import write_report
from circuits import ManifoldCircuit
from circuits.storage import results
from simulations.experiments import two_moons
from simulations.playing import make_playground
from tests.analysis.page.browser import Browser

HOSTILE = '</script><script>window.broken = 1</script><img src="x" onerror="window.broken = 2">'
HOSTILE += "{{ policy }}{% raw %}{# no #} <b>&amp; \u2028'\""
CLAIMS = [
    {"experiment": "two-moons", "claim": "two labels suffice", "figure": "0.999", "holds": True},
    {"experiment": "tiling-arcs", "claim": "tiles tile", "holds": False, "measured": 0.123456},
    {"experiment": HOSTILE, "claim": HOSTILE, "paper": HOSTILE, "figure": HOSTILE, "holds": None},
]


def draw_figure(file, **metadata):
    file.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12, 3))
    figure.subplots().plot([0, 1])
    figure.savefig(file, metadata=metadata)


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """A result of the Brian2 circuit, claims, figures, and a file that is no result."""
    directory = tmp_path_factory.mktemp("results")
    stream = two_moons.make_stream(two_moons.Settings(n_points=300, label_after=60), 0)
    circuit = ManifoldCircuit(stream.parameters, stream.lift, "cpp_standalone")
    run = circuit.run(stream.points, stream.labels, snapshot_every=1)
    run = two_moons.annotate(run, stream, 0).assign_attrs(seconds=1.5)
    results.save(run, directory / "two-moons" / "seed-0.nc")
    bare = run.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots", "snapshot_presentation"])
    for seed in (1, 2, 10):
        results.save(bare.assign_attrs(seed=seed), directory / "two-moons" / f"seed-{seed}.nc")
    odd = xr.Dataset({"value": ("place", [1.0])}, attrs={"experiment": HOSTILE, "engine": HOSTILE})
    results.save(odd, directory / "odd.nc")
    (directory / "broken.nc").write_bytes(b"not a result")
    (directory / "claims.json").write_text(json.dumps(CLAIMS), encoding="utf-8")
    draw_figure(directory / "figures" / "fig2.png", Description=f"Two moons. {HOSTILE}")
    draw_figure(directory / "figures" / "plain.png")
    write_report(directory)
    return directory


@pytest.fixture(scope="package")
def run(folder):
    """The result that the page explores; not to be changed."""
    return results.load(folder / "two-moons" / "seed-0.nc")


@pytest.fixture(scope="package")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def open_file(browser):
    """Opens pages in tabs, and leaves them after the test."""
    pages = []

    def open_file(file, **options):
        pages.append(browser.open(file, **options))
        return pages[-1]

    yield open_file
    for page in pages:
        page.close()


@pytest.fixture
def page(open_file, folder):
    return open_file(folder / "report.html")


@pytest.fixture
def open_page(open_file):
    """Writes and opens the report of a folder."""
    return lambda directory: open_file(write_report(directory))


@pytest.fixture(scope="package")
def playground_file(tmp_path_factory):
    """The playground, as the command writes it."""
    return make_playground(tmp_path_factory.mktemp("playground"), 0, [])


@pytest.fixture
def open_playground(open_file, playground_file):
    """Opens the playground, with a fragment if one is given."""
    return lambda fragment="", **size: open_file(playground_file, fragment=fragment, **size)


@pytest.fixture
def playground(open_playground):
    return open_playground()
