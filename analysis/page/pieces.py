"""Pieces of the page: sentences and tables about what a folder holds. Templates lay them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

from analysis.describe import Code, Table, tables
from analysis.describe.values import plain
from analysis.page.reading import EXPERIMENTS, MOST_CELLS, Claim, Result, in_short
from analysis.selection import in_words
from circuits.circuit import ManifoldCircuit
from circuits.errors import CircuitError, InputError
from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters
from circuits.spiking.circuit import SpikingCircuit
from circuits.spiking.parameters import SpikingParameters

CLAIM_COLUMNS = {
    "experiment": "Experiment",
    "claim": "Claim",
    "paper": "In the paper",
    "figure": "Found here",
}


LONG_COLUMNS = {"statistic": "Decided by", "figure": "Found here", "control": "Control"}
"""What stands below the table where claims have a short figure."""

MOST_OF_A_CLAIM = 10_000
"""Letters of a cell; figures by board and number of labels take a thousand."""


class Verdict(StrEnum):
    """What became of a claim, as it is shown."""

    HOLDS = "✓ holds"
    FAILS = "✗ does not hold"
    OPEN = "– not decided"


COUNTED = {
    Verdict.HOLDS: ("holds", "hold"),
    Verdict.FAILS: ("does not hold", "do not hold"),
    Verdict.OPEN: ("is not decided", "are not decided"),
}
"""What one claim does, and what several do."""


def title(results: Iterable[Result]) -> str:
    """What the experiments of a folder show; how many they are, where that would be too long."""
    titles = {result.experiment: result.title for result in results}
    if len(titles) < 3:
        return "; ".join(titles.values())
    return "The paper's experiments" if [*titles] == EXPERIMENTS else f"{len(titles)} experiments"


def summary(results: Sequence[Result], folder: str) -> str:
    """How much there is, of what, and where it was found."""
    presentations = sum(result.presentations for result in results)
    return (
        f"{_plural(len(results), 'result')} of {', '.join(_experiments(results))} in the folder "
        f"{folder}; {presentations:,} presentations in all."
    )


def _experiments(results: Iterable[Result]) -> list[str]:
    return list(dict.fromkeys(result.experiment for result in results))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def claims_table(claims: Sequence[Claim]) -> tuple[str, Table, Table | None]:
    """How many claims hold, in a sentence; each with its verdict; and, where claims have a short
    figure as well, the long ones with what decides and the control."""
    long = None
    claims = [_worded(claim) for claim in claims]
    if all(claim.get("short") for claim in claims):
        names = {"experiment": "Experiment", "claim": "Claim", **LONG_COLUMNS}
        used = {n: heading for n, heading in names.items() if any(c.get(n) for c in claims)}
        figures = (tuple(_claim_cell(claim.get(name)) for name in used) for claim in claims)
        long = Table("All figures", tuple(used.values()), tuple(figures))
        claims = [
            {
                "figure" if name == "short" else name: claim[name]
                for name in claim
                if name not in LONG_COLUMNS
            }
            for claim in claims
        ]
    # What an experiment adds to a claim (a measured value, say) gets a column of its own.
    columns = {
        name: heading
        for name, heading in CLAIM_COLUMNS.items()
        if any(claim.get(name) not in (None, "") for claim in claims)
    }
    for claim in claims:
        for name in claim:
            if name != "holds":
                columns.setdefault(name, in_short(name).replace("_", " ").capitalize())
    verdicts = [_verdict(claim.get("holds")) for claim in claims]
    rows = [
        (verdict, *(_claim_cell(claim.get(name)) for name in columns))
        for claim, verdict in zip(claims, verdicts, strict=True)
    ]
    counts = {verdict: verdicts.count(verdict) for verdict in COUNTED}
    text = ", ".join(
        f"{count} {COUNTED[verdict][count != 1]}" for verdict, count in counts.items() if count
    )
    sentence = f"Of {_plural(len(claims), 'claim')}, {text}."
    table = Table("Claims of the paper", ("Verdict", *columns.values()), tuple(rows))
    return sentence, table, long


def _worded(claim: Claim) -> Claim:
    """A claim without the flag, which is said in words where it is set."""
    rest = {name: value for name, value in claim.items() if name != "constructed"}
    if claim.get("constructed") is True:
        rest["claim"] = f"{in_short(claim.get('claim', ''))} (by construction)"
    return rest


def _verdict(holds: Any) -> Verdict:
    if not isinstance(holds, bool):
        return Verdict.OPEN
    return Verdict.HOLDS if holds else Verdict.FAILS


def _claim_cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else in_short(value, MOST_OF_A_CLAIM)


def model_tables(candidates: Iterable[Result]) -> tuple[str, list[Table]] | None:
    """The model of the first result that says which circuit made it: its name and the tables."""
    for result in candidates:
        if model := result.model():
            with suppress(CircuitError):  # each is right, and they do not go together
                return result.name, tables(_circuit(result, *model))
    return None


def _circuit(result: Result, parameters: CircuitParameters, lift: SphereLift) -> ManifoldCircuit:
    """The circuit that made a result."""
    if not result.is_spiking:
        return ManifoldCircuit(parameters, lift, engine="numpy")
    values = SpikingParameters(**result.mapping("spiking"))
    if max(parameters.n_tiles, parameters.n_interneurons) * values.cells > MOST_CELLS:
        raise InputError(f"it has more than {MOST_CELLS} cells of a kind")
    return SpikingCircuit(parameters, lift, engine="numpy", spiking=values)


def provenance_tables(results: Iterable[Result]) -> list[Table]:
    """How the results were made: one table of all, then the values behind each of its rows."""
    shared = (
        *("parameters", "spiking", "lift", "settings", "model_changes"),
        *("engine", "versions", "code"),
    )
    rows: list[tuple[str, ...]] = []
    details = []
    for group in _groups(results, *shared):
        first, seeds = group[0], _seeds(group)
        versions = ", ".join(
            in_short(f"{key} {in_short(value)}") for key, value in first.mapping("versions").items()
        )
        rows.append(
            (
                first.experiment,
                str(len(group)),
                seeds,
                first.text("engine"),
                Code(first.text("code")),
                versions or "not recorded",
            )
        )
        values = [
            (Code(prefix + in_short(name)), _plain(value))
            for prefix, attribute in (
                ("", "parameters"),
                ("lift.", "lift"),
                ("spiking.", "spiking"),
                ("", "settings"),
                ("changed: ", "model_changes"),
            )
            for name, value in first.mapping(attribute).items()
        ]
        if values:
            heading = f"Parameters: {first.experiment}, {first.text('engine')}, seeds {seeds}"
            details.append(Table(heading, ("Name", "Value"), tuple(values)))
    header = ("Experiment", "Results", "Seeds", "Engine", "Code", "Versions")
    return [Table("Provenance", header, tuple(rows)), *details]


def _plain(value: Any) -> str:
    try:
        return in_short(plain(value), MOST_OF_A_CLAIM)
    except RecursionError:
        return in_short(value)


def _groups(results: Iterable[Result], *keys: str) -> list[list[Result]]:
    """Results of one experiment that share these attributes, in order of appearance."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        key = (result.experiment, *(str(result.attributes.get(name)) for name in keys))
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def _seeds(group: Iterable[Result]) -> str:
    seeds = [seed for result in group for seed in result.seeds]
    return in_words(seeds) if seeds else "not recorded"


def times_table(results: Iterable[Result]) -> Table:
    """How long the runs took, by experiment and engine."""
    rows = []
    for group in _groups(results, "engine"):
        timed = [result for result in group if result.seconds is not None]
        seconds = sum(result.seconds or 0.0 for result in timed)
        shown = sum(result.presentations for result in timed)
        rows.append(
            (
                group[0].experiment,
                group[0].text("engine"),
                str(len(group)),
                f"{sum(result.presentations for result in group):,}",
                f"{seconds / len(timed):.3g} s" if timed else "not recorded",
                f"{seconds:.3g} s" if timed else "not recorded",
                f"{1e3 * seconds / shown:.3g} ms" if shown else "",
            )
        )
    header = ("Experiment", "Engine", "Results", "Presentations", "Each", "In all", "Per point")
    return Table("Run times", header, tuple(rows))
