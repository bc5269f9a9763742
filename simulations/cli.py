"""The command line. Nothing heavy is imported until a command needs it."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuits.errors import CircuitError, InputError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from circuits import CircuitParameters
    from simulations.experiments.experiment import Claim

app = typer.Typer(
    name="manifold-circuit",
    help="Simulate a neural circuit that learns manifolds from few labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Engine = Annotated[
    str, typer.Option(help="auto, cpp_standalone, cython or numpy: who computes the circuit.")
]
Seed = Annotated[int, typer.Option(help="Seed of the data.", min=0)]
Out = Annotated[Path, typer.Option(help="Folder for results and figures.")]


@app.callback()
def _commands() -> None:
    """Keep commands as subcommands even while there is only one."""


@app.command()
def demo(engine: Engine = "auto", seed: Seed = 0, out: Out = Path("results/demo")) -> None:
    """Two moons from two labels: run, compare with the reference, save result and figure.

    Example: manifold-circuit demo --seed 3 --out results/demo
    """
    from circuits import ManifoldCircuit, ReferenceCircuit, results
    from simulations.experiments import two_moons

    stream = two_moons.make_stream(two_moons.Settings(), seed)
    circuit = ManifoldCircuit(stream.parameters, stream.lift, engine)
    started = time.perf_counter()
    run = circuit.run(stream.points, stream.labels, snapshot_every=1, progress=True)
    seconds = time.perf_counter() - started
    run = two_moons.annotate(run, stream, seed)
    path = results.save(run, out / "two-moons.nc")

    reference = ReferenceCircuit(stream.parameters, stream.lift)
    expected = reference.run(stream.points, stream.labels, snapshot_every=1, progress=True)

    # Drawing imports matplotlib; the result is safe by now.
    from analysis.agreement import largest_differences, signs_agree
    from analysis.figures.moons import figure
    from analysis.style import save_figure
    from circuits.measures import accuracy

    files = save_figure(figure(run), out / "two-moons")
    half = len(stream.points) // 2
    share = accuracy(run["y"][half:, 0], stream.classes[half:])
    differences = largest_differences(run, expected)
    worst = max(differences, key=lambda name: differences[name])
    print(f"engine               {circuit.engine}")
    print(f"accuracy             {share:.4f} on the second half of {len(run['y'])} points")
    print(f"time                 {seconds:.2f} s for {len(run['y'])} presentations")
    print(
        f"settled              {1 - run.attrs['unsettled_share']:.2%} of presentations, "
        f"{1 - run.attrs['uncovered_share']:.2%} covered by a tile"
    )
    print(f"largest difference   {differences[worst]:.1e} ({worst}) from the NumPy reference")
    print(f"predicted signs      {'all equal' if signs_agree(run, expected) else 'NOT all equal'}")
    for file in (path, *files):
        print(f"wrote                {file}")


@app.command("list")
def list_experiments() -> None:
    """List the experiments.

    Example: manifold-circuit list
    """
    from simulations.experiments import EXPERIMENTS

    for name, (_, _, title) in EXPERIMENTS.items():
        print(f"{name:<24} {title}")


FirstSeed = Annotated[int, typer.Option(help="First seed; repeats count up.", min=0, max=9000)]
Jobs = Annotated[int, typer.Option(help="Processes to use.", min=1)]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a running Dask scheduler to use instead.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value for any parameter of the circuit or the experiment."),
]
Quick = Annotated[bool, typer.Option(help="Reduced size: a minute for everything.")]
ExperimentEngine = Annotated[
    str, typer.Option(help="cpp_standalone, cython, numpy, reference or exact.")
]


@app.command()
def run(
    experiment: Annotated[str | None, typer.Argument(help="A name from 'list'.")] = None,
    engine: ExperimentEngine = "cpp_standalone",
    seed: Annotated[int, typer.Option(help="First seed; repeats count up.", min=0, max=9000)] = 0,
    repeats: Annotated[int | None, typer.Option(help="How many seeds.", min=1)] = None,
    changes: Changes = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    out: Out = Path("results"),
    quick: Quick = False,
    source: Annotated[
        Path | None, typer.Option("--from", help="Run a result file again, from itself.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Your own points (CSV, NPY, NPZ or NetCDF) instead of an experiment."),
    ] = None,
) -> None:
    """Run one experiment, save every run and the merged result, check its claims.

    Finished runs are found again: an interrupted command goes on where it stopped.

    Example: manifold-circuit run two-moons --repeats 5 --set mu=100 --set tau_h='10 ms' --jobs 2

    Example: manifold-circuit run --from results/two-moons/seed-00000.nc --out results/again

    Example: manifold-circuit run --data points.csv --set n_tiles=100 --set mu=10
    """
    if sum(given is not None for given in (experiment, source, data)) != 1:
        raise InputError(
            "name an experiment ('manifold-circuit list' shows them), or give --from or --data"
        )
    if data is not None:
        _run_own_data(data, engine, changes or [], out)
        return
    from simulations import sweep
    from simulations.experiments import get_experiment

    if source is not None:
        path, difference = sweep.rerun(source, out)
        same = "the same numbers" if difference == 0 else f"numbers that differ by {difference:.1e}"
        print(f"{source} run again gives {same}")
        print(f"wrote {path}")
        if difference:
            raise typer.Exit(1)
        return
    assert experiment is not None
    chosen = get_experiment(experiment)
    config = chosen.config(engine, sweep.parse_changes(changes or []), quick)
    count = repeats or (chosen.quick_repeats if quick else chosen.repeats)
    _, claims = sweep.run_experiment(config, chosen.seeds(count, seed), out, jobs, scheduler)
    _print_claims(claims)
    print(f"wrote {out / experiment}.nc and {out / experiment}/")


def _run_own_data(data: Path, engine: str, changes: list[str], out: Path) -> None:
    from circuits import results
    from simulations import own_data, sweep
    from simulations.experiments.experiment import make_circuit

    stream = own_data.prepare(data, sweep.parse_changes(changes))
    circuit = make_circuit(engine, stream.parameters, stream.lift)
    result = circuit.run(stream.points, stream.labels, snapshot_every=1, progress=True)
    path = results.save(
        result.assign_attrs(experiment=f"data {data.name}", code=results.code_revision()),
        out / f"{data.stem}.nc",
    )
    p = stream.parameters
    print(f"{len(stream.points)} points, {int((stream.labels != 0).any(axis=1).sum())} labelled")
    print(f"{p.n_tiles} tiles of radius {p.tile_radius:g}, lift {stream.lift}")
    print(
        f"{1 - result.attrs['unsettled_share']:.2%} of presentations settled, "
        f"{1 - result.attrs['uncovered_share']:.2%} covered by a tile"
    )
    print(f"wrote {path}; 'manifold-circuit plot {path}' shows it")


@app.command()
def compare(
    data: Annotated[
        Path | None,
        typer.Option(help="Your own points (CSV, NPY, NPZ or NetCDF); default: two moons."),
    ] = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    points: Annotated[int, typer.Option(help="At most so many presentations.", min=2)] = 500,
    changes: Changes = None,
    studies: Annotated[
        bool,
        typer.Option(
            "--studies", help="Also settling with other time constants, convergence, stability."
        ),
    ] = False,
    out: Out = Path("results/compare"),
) -> None:
    """Run the circuit and the reference on one stream; print and plot how far they agree.

    Example: manifold-circuit compare --engine cython --points 200

    Example: manifold-circuit compare --data points.csv --set n_tiles=20
    """
    from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, results
    from simulations import own_data, sweep
    from simulations.experiments import two_moons

    values = sweep.parse_changes(changes or [])
    if data is not None:
        stream: own_data.OwnStream | two_moons.Stream = own_data.prepare(data, values)
    else:
        stream = two_moons.make_stream(two_moons.Settings(), seed, CircuitParameters(**values))
    shown, labels = stream.points[:points], stream.labels[:points]
    circuit = ManifoldCircuit(stream.parameters, stream.lift, engine)
    # Traces of the last presentations only: they would fill the memory for all.
    tail = max(1, min(5, len(shown) // 2))
    run = circuit.run(shown[:-tail], labels[:-tail], snapshot_every=1, progress=True)
    traced = ("h", "u", "V", "y")
    step = circuit.run(shown[-tail:], labels[-tail:], record=traced, snapshot_every=1)
    reference = ReferenceCircuit(stream.parameters, stream.lift)
    expected = reference.run(shown[:-tail], labels[:-tail], snapshot_every=1, progress=True)
    expected_step = reference.run(shown[-tail:], labels[-tail:], record=traced, snapshot_every=1)
    saved = [
        results.save(dataset, out / f"{name}.nc")
        for name, dataset in (("circuit", run), ("reference", expected), ("steps", step))
    ]

    from analysis import agreement
    from analysis.style import save_figure

    print(f"largest difference between engine {circuit.engine} and the NumPy reference")
    found = agreement.largest_differences(run, expected) | {
        name: value
        for name, value in agreement.largest_differences(step, expected_step).items()
        if name.endswith("_trace")
    }
    for name, value in found.items():
        print(f"  {name:<12} {value:.1e}")
    equal = agreement.signs_agree(run, expected)
    print(f"  signs of y   {'all equal' if equal else 'NOT all equal'}")
    figures = {
        "agreement": agreement.figure_agreement(run, expected),
        "agreement-steps": agreement.figure_agreement(step, expected_step),
    }
    if studies:
        figures |= _study_figures(run, stream.parameters)
    files = [file for name, figure in figures.items() for file in save_figure(figure, out / name)]
    for file in (*saved, *files):
        print(f"wrote {file}")
    print(f"'manifold-circuit plot {saved[-1]}' shows the circuit settling")


def _study_figures(run: xr.Dataset, p: CircuitParameters) -> dict[str, Figure]:
    """How the run would settle with other time constants, convergence in dt, and stability."""
    from analysis import studies

    settings: dict[str, dict[str, str]] = {"as they are": {}} | {
        f"{name} {word}": {name: f"{factor * value!r} s"}
        for name, value in (("tau_h", p.tau_h_), ("tau_u", p.tau_u_))
        for word, factor in (("halved", 0.5), ("doubled", 2.0))
    }
    return {
        "settling-error": studies.figure_settling_error(studies.settling_study(run, settings)),
        "convergence": studies.figure_convergence(studies.convergence_study()),
        "stability": studies.figure_stability_map(
            studies.stability_map(), studies.working_points(run)
        ),
    }


@app.command()
def plot(
    result: Annotated[Path, typer.Argument(help="A result file, of one run or merged.")],
    kind: Annotated[
        list[str] | None, typer.Option(help="What to draw; default: all the result can show.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures; default: beside the result.")
    ] = None,
) -> None:
    """Draw what a result can show, as PNG and PDF.

    Without --kind, everything that needs no computing; the rest is listed.

    Example: manifold-circuit plot results/demo/two-moons.nc --kind raster --kind tiles
    """
    from analysis import kinds
    from circuits import results

    dataset = results.load(result)
    folder = out or result.parent / "figures"
    offered = kinds.offered(dataset)
    if not offered:
        raise InputError(f"{result} holds nothing that can be plotted")
    extra = [n for n in offered if n == kinds.ANIMATION or kinds.KINDS[n].slow]
    for name in kind or [name for name in offered if name not in extra]:
        path = folder / f"{result.stem}-{name}"
        files = kinds.save(dataset, name, path)
        print("\n".join(f"wrote {file}" for file in files))
    if not kind and extra:
        print(f"on request: {', '.join(f'--kind {name}' for name in extra)}")


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="A folder of results, as 'reproduce' makes.")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; default: report.html in the folder.")
    ] = None,
) -> None:
    """Write one self-contained HTML page for a folder of results, with an explorer of the circuit.

    Example: manifold-circuit report results/reproduce
    """
    from analysis.page import write_report

    print(f"wrote {write_report(directory, out)}")


@app.command()
def describe(
    changes: Changes = None,
    out: Out = Path("results/describe"),
) -> None:
    """Print and save the model description, in the tables of Nordlie et al. (2009).

    It is read from the live Brian2 objects, as Markdown and LaTeX.

    Example: manifold-circuit describe --set n_tiles=200 --set n_interneurons=8
    """
    from analysis.describe import tables, to_latex, to_markdown
    from circuits import CircuitParameters, ManifoldCircuit
    from simulations.datasets import MOONS_LIFT
    from simulations.sweep import parse_changes

    parameters = CircuitParameters(**parse_changes(changes or []))
    found = tables(ManifoldCircuit(parameters, MOONS_LIFT, "numpy"))
    text = to_markdown(found)
    print(text)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in (("model.md", text), ("model.tex", to_latex(found))):
        (out / name).write_text(content, encoding="utf-8")
        print(f"wrote {out / name}")


@app.command()
def reproduce(
    engine: ExperimentEngine = "cpp_standalone",
    seed: FirstSeed = 0,
    jobs: Jobs = 2,
    scheduler: Scheduler = None,
    out: Out = Path("results/reproduce"),
    quick: Quick = False,
) -> None:
    """Run every experiment of the paper; write results, figures and one table of claims.

    Example: manifold-circuit reproduce --quick --jobs 2
    """
    from simulations import sweep
    from simulations.experiments import EXPERIMENTS, get_experiment

    claims, times = [], {}
    for name in EXPERIMENTS:
        chosen = get_experiment(name)
        config = chosen.config(engine, {}, quick)
        count = chosen.quick_repeats if quick else chosen.repeats
        started = time.perf_counter()
        _, found = sweep.run_experiment(config, chosen.seeds(count, seed), out, jobs, scheduler)
        times[name] = time.perf_counter() - started
        claims += found
        _print_claims(found)
    from analysis.figures import save_all

    started = time.perf_counter()
    written = [*sweep.save_claims(claims, out), *save_all(out)]
    times["figures"] = time.perf_counter() - started
    print("\n".join(f"wrote {path}" for path in written))
    print(f"'manifold-circuit report {out}' makes a page of it")
    for name, seconds in times.items():
        print(f"{name:<24} {seconds:7.1f} s")
    print(f"{'all':<24} {sum(times.values()):7.1f} s")


def _print_claims(claims: list[Claim]) -> None:
    for claim in claims:
        print(f"{'holds' if claim.holds else 'FAILS':<6} {claim.claim}: {claim.figure}")


@app.command()
def bench(
    quick: Annotated[bool, typer.Option(help="Two sizes, no Python loops, no scaling.")] = False,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats.", min=1)] = 3,
    out: Out = Path("results/bench"),
) -> None:
    """Time every engine side by side, and print, save and plot the ratios.

    Example: manifold-circuit bench --quick --repeats 3
    """
    from analysis.benchmarks import figure
    from analysis.style import save_figure
    from simulations import bench as benchmark

    results = benchmark.run_benchmark(quick, repeats)
    print(benchmark.table(results))
    for file in (
        benchmark.save(results, out / "bench.json"),
        *save_figure(figure(results), out / "bench"),
    ):
        print(f"wrote {file}")


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all compiled circuits.")] = False,
) -> None:
    """Show the compiled circuits that are kept for reuse, or remove them.

    Example: manifold-circuit cache --clear
    """
    import datetime

    from circuits.engines import cache as builds

    if clear:
        print(f"removed {builds.clear()} compiled circuits from {builds.cache_directory()}")
        return
    entries = builds.entries()
    for entry in entries:
        used = datetime.datetime.fromtimestamp(entry.last_used).strftime("%Y-%m-%d %H:%M")
        print(f"{entry.key[:12]}  {entry.size / 2**20:6.1f} MiB  last used {used}  {entry.title}")
    total = sum(entry.size for entry in entries) / 2**20
    room = f"{total:.1f} of {builds.cache_limit() / 2**20:.0f} MiB"
    print(f"{len(entries)} compiled circuits, {room}, in {builds.cache_directory()}")


def main() -> None:
    """Run the command line: exit code 2 and one sentence on bad input, 130 on an interrupt."""
    # Ended politely, a command ends its programs and removes its temporary files, as on Ctrl-C.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        app()
    except CircuitError as error:
        print(f"manifold-circuit: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("manifold-circuit: interrupted", file=sys.stderr)
        sys.exit(130)
