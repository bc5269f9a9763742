"""The command line. Nothing heavy is imported until a command needs it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from circuits.errors import CircuitError

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
    from circuits import ManifoldCircuit, ReferenceCircuit
    from simulations import results, two_moons

    stream = two_moons.make_stream(two_moons.Settings(), seed)
    circuit = ManifoldCircuit(stream.parameters, stream.lift, engine)
    started = time.perf_counter()
    run = circuit.run(stream.points, stream.labels, snapshot_every=100, progress=True)
    seconds = time.perf_counter() - started
    run = two_moons.annotate(run, stream, seed)
    path = results.save(run, out / "two-moons.nc")

    reference = ReferenceCircuit(stream.parameters, stream.lift)
    expected = reference.run(stream.points, stream.labels, snapshot_every=100, progress=True)

    # Drawing imports matplotlib; the result is safe by now.
    from analysis.agreement import largest_differences, signs_agree
    from analysis.measures import accuracy
    from analysis.style import save_figure
    from analysis.two_moons import figure

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


@app.command()
def bench(
    quick: Annotated[bool, typer.Option(help="Two sizes, no Python loops, no scaling.")] = False,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats.", min=1)] = 5,
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

    from circuits import cache as builds

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
    try:
        app()
    except CircuitError as error:
        print(f"manifold-circuit: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("manifold-circuit: interrupted", file=sys.stderr)
        sys.exit(130)
