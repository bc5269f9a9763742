"""The command line: options and help. Nothing heavy is imported until a command needs it."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuits.errors import CircuitError, InputError
from simulations.ending import ending_politely

if TYPE_CHECKING:
    from circuits.spiking.parameters import SpikingParameters

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ends."""

app = typer.Typer(
    name="manifold-circuit",
    help="Simulate a neural circuit that learns manifolds from few labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Engine = Annotated[str, typer.Option(help="Who computes the circuit; 'list' shows the names.")]
Seed = Annotated[int, typer.Option(help="Seed of the data, and of spiking cells.", min=0)]
FirstSeed = Annotated[int, typer.Option(help="First seed; repeats count up.", min=0)]
Jobs = Annotated[int, typer.Option(help="Processes to use.", min=1)]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a running Dask scheduler to use instead.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value for any parameter of the circuit or the experiment."),
]
Perturb = Annotated[
    list[str] | None,
    typer.Option(
        help="kind:key=value,key=value with lesion, current, noise, freeze, delay or gain as kind; "
        "what is done to the circuit. May be given again."
    ),
]
Quick = Annotated[bool, typer.Option(help="Reduced size, for a first look.")]
Out = Annotated[Path, typer.Option(help="Folder for results and figures.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Your own points (CSV, NPY, NPZ or NetCDF) instead."),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of --data with the labels, of any two classes; empty is unlabelled. "
        "Default: label. Without a header columns count from 1."
    ),
]
ClassColumn = Annotated[
    str | None,
    typer.Option(help="Column of --data with classes that only score what the circuit answers."),
]

Spiking = Annotated[
    bool, typer.Option("--spiking", help="With the circuit's spiking twin: cells that fire.")
]
Neuron = Annotated[
    str | None,
    typer.Option(
        help="Spiking cells: 'if' integrates and fires at a threshold, 'escape' fires at random."
    ),
]
Cells = Annotated[
    int | None, typer.Option(help="Spiking cells per tile and per interneuron.", min=1)
]
SpikingChanges = Annotated[
    list[str] | None,
    typer.Option("--set-spiking", help="key=value for any parameter of the spiking cells."),
]


def _refuse(context: typer.Context, names: str, why: str) -> None:
    """Say so if options were given that do nothing."""
    for name in names.split():
        if context.get_parameter_source(name).name != "DEFAULT":  # type: ignore[union-attr]
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            raise InputError(f"{option} does nothing {why}: leave it out")


def _spiking(
    context: typer.Context,
    spiking: bool,
    neuron: str | None,
    cells: int | None,
    changes: list[str] | None,
) -> SpikingParameters | None:
    """How the spiking twin's cells fire, if it is wanted."""
    if not spiking:
        _refuse(context, "neuron cells spiking_changes", "without --spiking")
        return None
    from simulations.changes import spiking_parameters

    return spiking_parameters(neuron, cells, changes or [])


@app.callback()
def _commands() -> None:
    """Keep commands as subcommands even while there is only one."""


@app.command()
def demo(
    context: typer.Context,
    engine: Engine = "auto",
    seed: Seed = 0,
    out: Out = Path("results/demo"),
    spiking: Spiking = False,
    neuron: Neuron = None,
    cells: Cells = None,
    spiking_changes: SpikingChanges = None,
) -> None:
    """Two moons from two labels: run, compare with the reference, save result and figure.

    Example: manifold-circuit demo --seed 3 --out results/demo

    Example: manifold-circuit demo --spiking --cells 4 --out results/spiking
    """
    firing = _spiking(context, spiking, neuron, cells, spiking_changes)
    from simulations.demo import run_demo

    run_demo(engine, seed, out, firing)


@app.command("list")
def list_names() -> None:
    """List the experiments, and the engines that can compute them.

    Example: manifold-circuit list
    """
    from simulations.experiments import EXPERIMENTS

    for name, entry in EXPERIMENTS.items():
        print(f"{name:<24} {entry.figure}: {entry.title}")
    from circuits.engines import ENGINES
    from circuits.engines.solvers import SOLVERS

    print(f"engines: {', '.join(ENGINES)}; in NumPy alone, for experiments: {', '.join(SOLVERS)}")


@app.command()
def run(
    context: typer.Context,
    experiment: Annotated[str | None, typer.Argument(help="A name from 'list'.")] = None,
    engine: Engine = "cpp_standalone",
    seed: FirstSeed = 0,
    repeats: Annotated[int | None, typer.Option(help="How many seeds.", min=1)] = None,
    changes: Changes = None,
    perturb: Perturb = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    out: Out = Path("results"),
    quick: Quick = False,
    source: Annotated[
        Path | None, typer.Option("--from", help="Run a result file again, from itself.")
    ] = None,
    data: Data = None,
    label_column: LabelColumn = None,
    class_column: ClassColumn = None,
    spiking: Spiking = False,
    neuron: Neuron = None,
    cells: Cells = None,
    spiking_changes: SpikingChanges = None,
) -> None:
    """Run one experiment, save every run and the merged result, check its claims.

    Finished runs are found again: an interrupted command goes on where it stopped.

    Example: manifold-circuit run two-moons --repeats 5 --set mu=100 --set tau_h='10 ms' --jobs 2

    Example: manifold-circuit run two-moons --perturb lesion:tiles=0.5,at=1000 --out results/lesion

    Example: manifold-circuit run --from results/two-moons/seed-00000.nc --out results/again

    Example: manifold-circuit run --data points.csv --set n_tiles=100 --set mu=10

    Example: manifold-circuit run --data flowers.csv --label-column species

    Example: manifold-circuit run --data points.csv --spiking --out results/spiking
    """
    if sum(given is not None for given in (experiment, source, data)) != 1:
        raise InputError(
            "name an experiment ('manifold-circuit list' shows them), or give --from or --data"
        )
    from circuits.parts.perturbations import parse_perturbation

    done = [parse_perturbation(text) for text in perturb or []]
    if data is not None:
        from simulations import own_data, sweep

        _refuse(context, "repeats jobs scheduler quick", "with --data")
        firing = _spiking(context, spiking, neuron, cells, spiking_changes)
        if firing is None:
            _refuse(context, "seed", "with --data")
        stream = own_data.prepare(
            data, sweep.parse_changes(changes or []), label_column, class_column
        )
        own_data.run_file(data, stream, engine, out, firing, seed, done)
        return
    _refuse(
        *(context, "label_column class_column spiking neuron cells spiking_changes"),
        "without --data",
    )
    if source is not None:
        _refuse(context, "engine seed repeats changes perturb jobs scheduler quick", "with --from")
        _run_again(source, out)
        return
    if scheduler is not None:
        _refuse(context, "jobs", "with --scheduler")
    from simulations import sweep
    from simulations.experiments import get_experiment

    assert experiment is not None
    chosen = get_experiment(experiment)
    config = chosen.config(engine, sweep.parse_changes(changes or []), quick, done)
    count = repeats or (chosen.quick_repeats if quick else chosen.repeats)
    _, claims = sweep.run_experiment(config, chosen.seeds(count, seed), out, jobs, scheduler)
    print("\n".join(claim.line() for claim in claims))
    print(f"wrote {out / experiment}.nc and {out / experiment}/")


@app.command("sweep")
def sweep_parameters(
    context: typer.Context,
    experiment: Annotated[str, typer.Argument(help="A name from 'list'.")],
    over: Annotated[
        list[str],
        typer.Option(
            help="name=a,b,c, name=low:high:count or name=low:high:count:log, for any parameter "
            "of the circuit or the experiment; several are combined."
        ),
    ],
    engine: Engine = "cpp_standalone",
    seed: FirstSeed = 0,
    repeats: Annotated[int | None, typer.Option(help="How many seeds of each.", min=1)] = None,
    changes: Changes = None,
    perturb: Perturb = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    out: Out = Path("results"),
    quick: Quick = False,
) -> None:
    """Run an experiment at every combination of values of its parameters, into one file.

    Controls and comparisons that take most of an experiment's time may be left out. Finished runs
    are found again, also when there are more repeats or other values; 'plot' draws the file.

    Example: manifold-circuit sweep two-moons --over tile_radius=0.1:0.6:6 --repeats 5 --jobs 2

    Example: manifold-circuit sweep two-moons --over mu=1:1000:4:log --over readout=clip,tanh
    """
    if scheduler is not None:
        _refuse(context, "jobs", "with --scheduler")
    from circuits.parts.perturbations import parse_perturbation
    from simulations import parameter_sweep
    from simulations.changes import parse_changes
    from simulations.combinations import parse_over

    parameter_sweep.sweep(
        experiment,
        parse_over(over),
        changes=parse_changes(changes or []),
        repeats=repeats,
        seed=seed,
        engine=engine,
        jobs=jobs,
        scheduler=scheduler,
        out=out,
        quick=quick,
        perturbations=[parse_perturbation(text) for text in perturb or []],
    )
    print(f"wrote {out / f'sweep-{experiment}'}.nc and {out / f'sweep-{experiment}'}/")


def _run_again(source: Path, out: Path) -> None:
    from simulations import sweep

    path, difference = sweep.rerun(source, out)
    same = "the same numbers" if difference == 0 else f"numbers that differ by {difference:.1e}"
    print(f"{source} run again gives {same}")
    print(f"wrote {path}")
    if difference > sweep.ROUNDING:
        raise typer.Exit(1)


@app.command()
def predict(
    circuit: Annotated[
        Path, typer.Argument(help="A circuit, as 'run --data', 'demo' and circuit.save write it.")
    ],
    data: Annotated[Path, typer.Option(help="Points (CSV, NPY, NPZ or NetCDF).")],
    out: Annotated[
        Path | None,
        typer.Option(help="The .csv or .nc file to write; default: FILE-answers.csv by --data."),
    ] = None,
    engine: Engine = "auto",
    label_column: Annotated[
        str | None,
        typer.Option(help="Column of --data with classes, to score the answers. Default: label."),
    ] = None,
    class_column: Annotated[
        str | None,
        typer.Option(help="Column with the classes to score by, where there are labels besides."),
    ] = None,
) -> None:
    """Let a trained circuit answer to points, with frozen weights, and write its answers.

    A row per point: y of every readout, and the class it stands for where classes have names.

    Example: manifold-circuit predict results/points-circuit.nc --data new.csv --out answers.csv
    """
    from simulations.prediction import answer_file

    answer_file(circuit, data, engine, out, label_column, class_column)


@app.command()
def compare(
    context: typer.Context,
    data: Data = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    points: Annotated[int, typer.Option(help="At most so many presentations.", min=2)] = 500,
    changes: Changes = None,
    label_column: LabelColumn = None,
    class_column: ClassColumn = None,
    studies: Annotated[
        bool,
        typer.Option(
            "--studies", help="Also settling with other time constants, convergence, stability."
        ),
    ] = False,
    out: Out = Path("results/compare"),
    spiking: Spiking = False,
    neuron: Neuron = None,
    cells: Cells = None,
    spiking_changes: SpikingChanges = None,
) -> None:
    """Run the circuit and the reference on one stream; print and plot how far they agree.

    The stream is two moons, whose two labels come after 200 presentations, or your own. With
    --spiking the circuit's spiking twin is set beside the circuit and the closed form: with the
    same frozen weights, and learning from scratch.

    Example: manifold-circuit compare --engine cython --points 250

    Example: manifold-circuit compare --data points.csv --set n_tiles=20

    Example: manifold-circuit compare --spiking --cells 4 --set-spiking presentation='500 ms'
    """
    from simulations import own_data, sweep
    from simulations.comparison import run_comparison
    from simulations.experiments import two_moons

    firing = _spiking(context, spiking, neuron, cells, spiking_changes)
    if firing is not None:
        _refuse(context, "studies", "with --spiking")
    values = sweep.parse_changes(changes or [])
    if data is not None:
        if firing is None:
            _refuse(context, "seed", "with --data")
        stream: own_data.OwnStream | two_moons.Stream = own_data.prepare(
            data, values, label_column, class_column
        )
    else:
        _refuse(context, "label_column class_column", "without --data")
        stream = two_moons.make_stream(
            two_moons.Settings(), seed, two_moons.TwoMoons.parameters.replace(**values)
        )
    if firing is not None:
        from simulations.twins import compare_spiking

        compare_spiking(stream, engine, points, out, firing, seed, data)
        return
    run_comparison(stream, engine, points, studies, out, data)


@app.command()
def plot(
    result: Annotated[Path, typer.Argument(help="A result file, of one run or merged.")],
    kind: Annotated[
        list[str] | None, typer.Option(help="What to draw; default: all the result can show.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures; default: beside the result.")
    ] = None,
    variable: Annotated[
        str | None, typer.Option(help="Of a sweep: what to draw; default: what says most.")
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="Of a sweep: dimension=value to stay at, of any.")
    ] = None,
) -> None:
    """Draw what a result can show, as PNG and PDF.

    Without --kind, everything that needs no computing; the rest is listed.

    Example: manifold-circuit plot results/demo/two-moons.nc --kind raster --kind tiles

    Example: manifold-circuit plot results/sweep-two-moons.nc --variable spread_presentations
    """
    from analysis import kinds
    from circuits.storage import files, results

    dataset, ending = results.load(result), ""
    if variable is not None or at:
        from analysis.sweeps import chosen, held_name
        from simulations.changes import parse_changes

        dataset = chosen(dataset, variable, parse_changes(at or [], "--at"))
        # Each of what may be chosen has a file of its own.
        ending = "".join(f"-{part}" for part in (variable, held_name(dataset)) if part)
    folder = out or result.parent / "figures"
    files.require_folder(folder)
    offered = kinds.offered(dataset)
    extra = [n for n in offered if n == kinds.ANIMATION or kinds.KINDS[n].slow]
    wanted = kind or [name for name in offered if name not in extra]
    if not wanted:
        raise InputError(f"{result} holds nothing that can be plotted")
    refused = []
    for name in wanted:
        try:
            drawn = kinds.save(dataset, name, folder / f"{result.stem}-{name}{ending}")
        except InputError as error:
            refused.append(str(error))
        else:
            print("\n".join(f"wrote {file}" for file in drawn))
    if not kind and extra:
        print(f"on request: {', '.join(f'--kind {name}' for name in extra)}")
    if refused:
        raise InputError(f"{result}: {'; '.join(refused)}")


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
    from circuits.engines.brian import import_brian2

    import_brian2()
    from analysis.page import write_report

    print(f"wrote {write_report(directory, out)}")


@app.command()
def playground(
    out: Annotated[
        Path, typer.Option(help="The page to write, or a folder for playground.html.")
    ] = Path("playground.html"),
    seed: Annotated[int, typer.Option(help="Seed of the points and their order.", min=0)] = 0,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="key=value for any parameter of the circuit, or data, noise, drift."
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page in which the circuit learns live, to play with.

    Example: manifold-circuit playground --set data=ring --set n_tiles=80 --out ring.html
    """
    from simulations.playing import make_playground

    print(f"wrote {make_playground(out, seed, changes or [])}")


@app.command()
def describe(
    context: typer.Context,
    changes: Changes = None,
    out: Out = Path("results/describe"),
    spiking: Spiking = False,
    neuron: Neuron = None,
    cells: Cells = None,
    spiking_changes: SpikingChanges = None,
) -> None:
    """Print and save the model description, in the tables of Nordlie et al. (2009).

    It is read from the live Brian2 objects, as Markdown and LaTeX.

    Example: manifold-circuit describe --set n_tiles=200 --set n_interneurons=8

    Example: manifold-circuit describe --spiking --neuron escape --cells 4
    """
    from circuits.engines.brian import import_brian2

    firing = _spiking(context, spiking, neuron, cells, spiking_changes)
    import_brian2()
    from analysis.describe import tables, to_latex, to_markdown
    from circuits import CircuitParameters, ManifoldCircuit, SpikingCircuit
    from circuits.storage import files
    from simulations.datasets import MOONS_LIFT
    from simulations.sweep import parse_changes

    parameters = CircuitParameters(**parse_changes(changes or []))
    circuit = ManifoldCircuit(parameters, MOONS_LIFT, "numpy")
    if firing is not None:
        circuit = SpikingCircuit(parameters, MOONS_LIFT, "numpy", spiking=firing)
    files.require_folder(out)
    found = tables(circuit)
    text = to_markdown(found)
    print(text)
    for name, content in (("model.md", text), ("model.tex", to_latex(found))):
        print(f"wrote {files.write(out / name, content)}")


@app.command()
def reproduce(
    context: typer.Context,
    engine: Engine = "cpp_standalone",
    seed: FirstSeed = 0,
    jobs: Jobs = 2,
    scheduler: Scheduler = None,
    out: Out = Path("results/reproduce"),
    quick: Quick = False,
) -> None:
    """Run every experiment of the paper; write results, figures and one table of claims.

    Example: manifold-circuit reproduce --quick --jobs 2
    """
    from simulations.reproduction import run_all

    if scheduler is not None:
        _refuse(context, "jobs", "with --scheduler")
    run_all(engine, seed, jobs, scheduler, out, quick)


@app.command()
def bench(
    quick: Annotated[
        bool, typer.Option(help="Two sizes, no Python loops, no scaling, no sweep.")
    ] = False,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats.", min=1)] = 3,
    out: Out = Path("results/bench"),
) -> None:
    """Time every engine side by side, and print, save and plot the ratios.

    Example: manifold-circuit bench --quick --repeats 3
    """
    from analysis.benchmarks import figure
    from analysis.style import save_figure
    from circuits.storage import files
    from simulations import bench as benchmark

    files.require_folder(out)
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names may be any bytes
    try:
        with ending_politely():
            app()
    except CircuitError as error:
        print(f"manifold-circuit: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:
        reason = str(error).partition("\n")[0] or "no more to be had"
        print(f"manifold-circuit: out of memory ({reason}): choose less", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"manifold-circuit: {error.strerror or error}{where}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as end:
        # Of Ctrl-C in a command typer makes an exit of its own, with the same code and no word.
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        print("manifold-circuit: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
