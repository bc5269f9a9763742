"""Running the repeats of experiments: in processes of this machine or on a Dask cluster.

A repeat is a function of a configuration and a seed that returns a data set. Whoever computes it,
it is saved here, as soon as it arrives; what is already there and was made from the same
configuration is not computed again.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from circuits import CircuitParameters
from circuits.dataset import versions
from circuits.engines.solvers import check_engine
from circuits.errors import CircuitError, InputError, LostLabelWarning, UnsettledWarning, shown
from circuits.parts.perturbations import perturbation_from
from circuits.storage import files, results
from simulations.changes import parse_changes as parse_changes
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.claim import Claim, to_json
from simulations.experiments.experiment import Config, Report
from simulations.run_bar import counting

ROUNDING = 1e-8
"""Runs that differ by less are the same but for rounding, which is another on other machines."""


TROUBLES = ("unsettled_share", "uncovered_share", "lost_labels")
"""What a run counts of presentations that went wrong."""


CONNECT_SECONDS = 10
"""How long a Dask scheduler may take to answer."""


PARENT_SECONDS = 1.0
"""How often a worker looks whether its parent is still there."""


@dataclass(frozen=True)
class Job:
    """One repeat: plain values only, so that it can travel."""

    config: dict[str, Any]
    seed: int


def config_from(values: Any) -> Config[Any]:
    """A configuration from its plain values, which may come from a file of any content."""
    wanted = {"experiment": str, "engine": str, "parameters": dict, "settings": dict}
    known = {**wanted, "perturbations": list}
    if not (isinstance(values, dict) and wanted.keys() <= values.keys() <= known.keys()) or not all(
        isinstance(value, known[name]) for name, value in values.items()
    ):
        raise InputError(f"its config must hold {', '.join(wanted)}, and does not")
    experiment = get_experiment(values["experiment"])
    return Config(
        values["experiment"],
        check_engine(values["engine"]),
        CircuitParameters(**values["parameters"]),
        experiment.settings(values["settings"]),
        tuple(perturbation_from(one) for one in values.get("perturbations", [])),
    )


def run_job(job: Job, report: Report = lambda word: None, measured: bool = False) -> xr.Dataset:
    """Compute one repeat; ``measured``, only what a sweep over parameters wants of it."""
    config = config_from(job.config)
    experiment = get_experiment(config.experiment)
    started = time.perf_counter()
    # Repeats run side by side, and on matrices this small the threads of a BLAS cost more in
    # waiting for each other than they save.
    with threadpool_limits(1), warnings.catch_warnings():
        # They are counted in the result, where tables show them; forty warnings would not help.
        warnings.simplefilter("ignore", UnsettledWarning)
        warnings.simplefilter("ignore", LostLabelWarning)
        dataset = (experiment.measure if measured else experiment.simulate)(
            config, job.seed, report
        )
    return dataset.assign_attrs(
        experiment=config.experiment,
        title=EXPERIMENTS[config.experiment].title,
        config=json.dumps(job.config),
        fingerprint=config.fingerprint(),
        engine=dataset.attrs.get("engine", config.engine),
        seed=job.seed,
        seconds=time.perf_counter() - started,
        versions=json.dumps(versions()),
        code=results.code_revision(),
        kind=f"run {config.experiment}",
        variables=_shape_of(dataset),
    )


def _shape_of(dataset: xr.Dataset) -> str:
    """Names and shapes of the variables: a result that has others was tampered with."""
    found = {str(name): list(dataset[name].shape) for name in sorted(dataset.data_vars, key=str)}
    return json.dumps(found)


def job_path(out: Path, experiment: str, seed: int) -> Path:
    """Where a repeat is kept."""
    return out / experiment / f"seed-{seed:05d}.nc"


def finished(out: Path, config: Config[Any], seeds: list[int]) -> list[int]:
    """Seeds whose results are there, whole, made from this configuration and by this code.

    What stands in a result's place and is not whole is set aside.
    """
    found, wanted = [], (config.fingerprint(), results.code_revision())
    for seed in seeds:
        path = job_path(out, config.experiment, seed)
        if not os.path.lexists(path):
            continue
        whole = results.is_whole(path)
        if whole:
            with results.opened(path) as dataset:
                whole = _is_run(dataset, config.experiment, seed)
                found += [seed] * (whole and _made_from(dataset) == wanted)
        if not whole:
            results.set_aside(path)
    return found


def _is_run(dataset: xr.Dataset, experiment: str, seed: int) -> bool:
    """Whether a data set is what `run_job` made of an experiment and a seed, complete."""
    known = dataset.attrs
    return (
        known.get("kind") == f"run {experiment}"
        and known.get("variables") == _shape_of(dataset) != "{}"
        and str(known.get("seed")) == str(seed)
    )


def _made_from(dataset: xr.Dataset) -> tuple[Any, Any]:
    return dataset.attrs.get("fingerprint"), dataset.attrs.get("code")


def run_experiment(
    config: Config[Any],
    seeds: list[int],
    out: Path,
    jobs: int = 1,
    scheduler: str | None = None,
) -> tuple[xr.Dataset, list[Claim]]:
    """Run an experiment's repeats, merge them into one file, and check its claims."""
    target, kind = out / f"{config.experiment}.nc", f"merged {config.experiment}"
    if scheduler is None:  # elsewhere there may be what is not here
        missing = [s for s in seeds if not os.path.lexists(job_path(out, config.experiment, s))]
        get_experiment(config.experiment).check(config, missing)
    files.require_folder(out / config.experiment)
    files.clear_partial(out / config.experiment)
    results.make_way(target, kind)
    done = finished(out, config, seeds)
    if done:
        print(f"{config.experiment}: {len(done)} of {len(seeds)} runs were finished before")
    older = sum(job_path(out, config.experiment, seed).exists() for seed in set(seeds) - {*done})
    if older:
        print(f"{config.experiment}: {older} runs of other settings or other code are replaced")
    todo = [Job(config.as_dict(), seed) for seed in seeds if seed not in done]
    with counting(config.experiment, "", len(done), len(seeds), jobs, scheduler) as bar:
        for dataset in compute(todo, jobs, scheduler, bar.set_postfix_str):
            results.save(dataset, job_path(out, config.experiment, dataset.attrs["seed"]))
            bar.set_postfix_str("", refresh=False)
            bar.add()
    merged = merge([results.load(job_path(out, config.experiment, seed)) for seed in seeds])
    claims = claims_of(config.experiment, merged)
    merged.attrs |= {"claims": to_json(claims), "experiment": config.experiment, "kind": kind}
    merged.attrs.pop("variables", None)
    results.save(merged, target)
    print(f"{config.experiment}: {troubles(merged)}")
    return merged, claims


def troubles(merged: xr.Dataset) -> str:
    """How many presentations did not settle or met no tile, in the worst of the repeats."""
    unsettled, uncovered, lost = (merged[f"run_{name}"].to_numpy() for name in TROUBLES)
    return (
        f"at most {np.nanmax(unsettled):.2%} of presentations unsettled and "
        f"{np.nanmax(uncovered):.2%} uncovered in any run, {int(np.nansum(lost))} labels lost in "
        "all"
    )


def compute(
    todo: Sequence[Job],
    jobs: int,
    scheduler: str | None,
    report: Report = lambda word: None,
    work: Callable[..., xr.Dataset] | None = None,
) -> Iterator[xr.Dataset]:
    """The results of jobs, in the order they are finished.

    ``report`` hears what a job is at, if they run one after the other in this process. ``work``
    computes a job; `run_job` unless it is given.
    """
    work = work or run_job
    if not todo:  # nobody is needed, neither here nor elsewhere
        return
    if scheduler is not None:
        yield from _on_cluster(todo, scheduler, work)
    elif jobs == 1 or len(todo) == 1:
        for job in todo:
            yield work(job, report)
    else:
        from joblib import Parallel, delayed

        parallel = Parallel(
            n_jobs=jobs,
            return_as="generator_unordered",
            pre_dispatch="2*n_jobs",
            batch_size=1,
            initializer=_follow,
            initargs=(os.getpid(),),
        )
        yield from parallel(delayed(work)(job) for job in todo)


def _follow(parent: int) -> None:
    """Let this worker end when its parent is gone, or is gone already: it would wait for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def _on_cluster(
    todo: Sequence[Job], address: str, work: Callable[..., xr.Dataset]
) -> Iterator[xr.Dataset]:
    """The same on a running Dask cluster; a job whose worker dies is given to another one."""
    try:
        from distributed import CancelledError, Client, as_completed
    except ImportError:
        raise InputError(
            "--scheduler needs dask.distributed: pip install 'manifold-circuit[cluster]'"
        ) from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"there is no Dask scheduler at {address}: {error}") from None
    with client:
        futures = [client.submit(work, job, pure=False, retries=2) for job in todo]
        for future in as_completed(futures):
            try:
                found = future.result()
            except CircuitError:
                raise
            except (OSError, CancelledError) as error:
                raise InputError(
                    f"the Dask cluster at {address} is gone ({type(error).__name__}): what was "
                    "finished is kept, and the same command goes on from there"
                ) from None
            yield found
            future.release()


def claims_of(name: str, merged: xr.Dataset) -> list[Claim]:
    """The claims of an experiment on its merged repeats, each with the experiment's name."""
    return [replace(claim, experiment=name) for claim in get_experiment(name).claims(merged)]


def merge(datasets: list[xr.Dataset]) -> xr.Dataset:
    """Repeats along a dimension ``repeat``, with their seeds; attributes that all share stay."""
    if not datasets:
        raise InputError("there are no runs to merge")
    seeds = [int(dataset.attrs["seed"]) for dataset in datasets]
    seconds = [float(dataset.attrs["seconds"]) for dataset in datasets]
    merged = xr.concat(
        datasets,
        dim="repeat",
        combine_attrs="drop_conflicts",
        data_vars="all",
        coords="minimal",
        compat="override",
        join="exact",
    )
    merged = merged.assign_coords(seed=("repeat", seeds), run_seconds=("repeat", seconds))
    # What may differ between repeats, such as runs resumed after an update, stays with each.
    for name in ("engine", "code"):
        values = [str(dataset.attrs.get(name, "unknown")) for dataset in datasets]
        merged = merged.assign_coords({f"run_{name}": ("repeat", values)})
    for name in TROUBLES:
        if all(name in dataset.attrs for dataset in datasets):
            counts = [dataset.attrs[name] for dataset in datasets]
            merged = merged.assign_coords({f"run_{name}": ("repeat", counts)})
    merged.attrs["seconds"] = float(np.sum(seconds))
    return merged


def rerun(path: Path, out: Path) -> tuple[Path, float]:
    """Run a saved result again from what it says of itself: the new file, and how far it differs.

    The difference is the largest over all variables; 0.0 means the same numbers.
    """
    old = results.load(path)
    if "config" not in old.attrs or "seed" not in old.attrs:
        raise InputError(
            f"{path} does not say how it was made: only results of 'run' can be re-run"
        )
    if not old.data_vars:
        raise InputError(f"{path} holds no variables: there is nothing to compare a re-run with")
    job = _job_of(path, old)
    target = job_path(out, job.config["experiment"], job.seed)
    get_experiment(job.config["experiment"]).check(config_from(job.config), [job.seed])
    files.require_folder(target.parent)
    results.make_way(target, f"run {job.config['experiment']}", path)
    if target.exists() and results.load(target).attrs.get("config") != old.attrs["config"]:
        raise InputError(f"{target} holds a run of other settings: give another --out")
    new = run_job(job)
    return results.save(new, target), _largest_difference(old, new)


def _job_of(path: Path, old: xr.Dataset) -> Job:
    """The job that made a result, from its attributes, which may hold anything."""
    try:
        values = json.loads(old.attrs["config"])
    except (TypeError, ValueError, RecursionError):
        values = None
    try:
        config = config_from(values)
    except CircuitError as error:
        reason = str(error)[:200]
        raise InputError(f"{path} does not say how it was made: {reason}") from None
    seed = np.asarray(old.attrs["seed"])
    if seed.shape != () or not np.issubdtype(seed.dtype, np.integer) or not 0 <= seed < 2**32:
        raise InputError(
            f"{path} does not say how it was made: its seed must be a whole number from 0 to "
            f"2^32 - 1, got {shown(old.attrs['seed'])}"
        )
    return Job(config.as_dict(), int(seed))


def _largest_difference(old: xr.Dataset, new: xr.Dataset) -> float:
    """Over all variables; infinite where one is missing, of another shape, or unknown."""
    if _shape_of(old) != _shape_of(new):
        return np.inf
    differences = [0.0]
    for name in old.data_vars:
        before, after = old[name].to_numpy(), new[name].to_numpy()
        if before.dtype.kind in "fiub" and after.dtype.kind in "fiub":
            unknown = np.isnan(before.astype(float))
            if (unknown != np.isnan(after.astype(float))).any():
                return np.inf
            differences.append(float(np.abs(after.astype(float) - before)[~unknown].max(initial=0)))
        elif not np.array_equal(before, after):
            return np.inf
    return max(differences)
