"""Making the runs of a plan, some at a time, so that it can stop and go on whenever it must.

What a run came to is added to `results.json` as soon as it ends; a run that is in there is not made
again, and one that was interrupted goes on from its last epoch.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from foveate.datasets import ImageDataset, Splits
from foveate.errors import FoveateError, InputError, RunError
from foveate.experiments.cost import Shape, measure_cost
from foveate.experiments.error_curve import ErrorCurve, read_error_curve, with_tests
from foveate.experiments.plans import Plan
from foveate.experiments.pointing import measure_pointing
from foveate.experiments.results import RESULTS, load_outcomes, save_outcomes
from foveate.experiments.snapshots import Snapshots
from foveate.experiments.trial import Outcome, Trial
from foveate.training import (
    Classifier,
    Hardware,
    Settings,
    build_splits,
    evaluate,
    read_log,
    train,
)

ERROR = "error.txt"
"""Why a run failed, in its folder."""
Told = Callable[[int, int, str], None]
"""Told the number of runs done, of all, and which one it is about."""


@dataclass(frozen=True)
class Failure:
    """A run that ended in an error that says nothing about the others: a full GPU, for one.

    Attributes:
        name: the trial's.
        why: the error, in a line.
    """

    name: str
    why: str


def run_plan(
    plan: Plan,
    folder: Path,
    hardware: Hardware,
    *,
    jobs: int = 1,
    costs: bool = True,
    progress: bool = False,
    tell: Told | None = None,
) -> dict[str, Outcome]:
    """Make the runs of a plan that are not made yet.

    Args:
        plan: which runs.
        folder: where their folders and `results.json` are.
        hardware: where to run them.
        jobs: how many to make at a time, each in a process of its own.
        costs: whether to measure time and memory, once for each row of the table; nothing else
            runs meanwhile.
        progress: whether to show a bar for each run, where they are made one at a time.
        tell: told before each run, or, where several are made at a time, after it.

    Returns:
        What all the plan's runs came to, by name.

    Raises:
        RunError: where runs failed; all others are made and saved then.
    """
    outcomes = load_outcomes(folder / RESULTS)
    drawn = {names[0] for rows in plan.drawn for names in rows.values()}
    todo = []
    for name, trial in plan.trials.items():
        if name in outcomes:
            _check_same(trial, outcomes[name], folder)
        else:
            todo.append(replace(trial, drawn=name in drawn))
    shared = SharedSplits()
    if jobs > 1:
        made = run_at_once(todo, folder, hardware, jobs, tell)
    else:
        made = _run_in_turn(todo, folder, hardware, shared, progress, tell)
    failures = []
    for result in made:
        if isinstance(result, Failure):
            failures.append(result)
            continue
        outcomes[result.name] = result
        save_outcomes(outcomes, folder / RESULTS)
    for names in plan.table.values() if costs else ():
        if names[0] in outcomes and not outcomes[names[0]].cost:
            settings = plan.trials[names[0]].settings
            test = shared.get(replace(settings, painted=0)).test  # nobody looks at the others
            cost = _cost(settings, test, hardware)
            outcomes[names[0]] = replace(outcomes[names[0]], cost=cost)
            save_outcomes(outcomes, folder / RESULTS)
    if failures:
        raise RunError(
            f"{len(failures)} of {len(todo)} runs failed, and the same command makes them again; "
            f"the first was {failures[0].name}: {failures[0].why} (see {ERROR} in its folder)"
        )
    return {name: outcomes[name] for name in plan.trials}


def _run_in_turn(
    trials: list[Trial],
    folder: Path,
    hardware: Hardware,
    shared: SharedSplits,
    progress: bool,
    tell: Told | None,
) -> Iterator[Outcome | Failure]:
    for number, trial in enumerate(trials):
        if tell is not None:
            tell(number, len(trials), trial.name)
        yield _attempt(trial, folder, hardware, shared, progress)


def run_at_once(
    trials: list[Trial], folder: Path, hardware: Hardware, jobs: int, tell: Told | None = None
) -> Iterator[Outcome | Failure]:
    """Make several runs at a time, each in a process of its own; they come as they end.

    Args:
        trials: the runs.
        folder: where their folders are.
        hardware: where to run them; all of them share it.
        jobs: how many at a time.
        tell: told after each run.
    """
    threads = max(1, (os.cpu_count() or 1) // jobs)
    # A fork of a process that has used a GPU cannot use it.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, spawn, torch.set_num_threads, (threads,)) as pool:
        futures = [pool.submit(_run_apart, trial, folder, hardware) for trial in trials]
        try:
            for number, future in enumerate(as_completed(futures)):
                result = future.result()
                if tell is not None:
                    failed = ", which failed" if isinstance(result, Failure) else ""
                    tell(number, len(trials), result.name + failed)
                yield result
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_apart(trial: Trial, folder: Path, hardware: Hardware) -> Outcome | Failure:
    return _attempt(trial, folder, hardware, _SHARED)


def _attempt(
    trial: Trial, folder: Path, hardware: Hardware, shared: SharedSplits, progress: bool = False
) -> Outcome | Failure:
    place = folder / "runs" / trial.name / ERROR
    place.unlink(missing_ok=True)
    try:
        return run_trial(trial, folder, hardware, shared.get(trial.settings), progress)
    except FoveateError:
        raise  # what the user can mend would fail every run
    except Exception as error:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(traceback.format_exc())
        lines = str(error).splitlines() or [""]
        return Failure(trial.name, f"{type(error).__name__}: {lines[0]}")


class SharedSplits:
    """The data of a run, for as long as the next runs need the same: it is decoded once."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._splits: Splits | None = None

    def get(self, settings: Settings) -> Splits:
        """The data that settings describe."""
        key = tuple(getattr(settings, name) for name in _DATA)
        if self._splits is None or key != self._key:
            self._splits = None  # lets go of the last before the next is read
            self._key, self._splits = key, build_splits(settings)
        return self._splits


_DATA = (
    "dataset",
    "root",
    "seed",
    "fold",
    "images",
    "painted",
    "keep",
    "classes",
    "channels",
    "overview_size",
)
"""The settings that decide what `build_splits` gives."""

_SHARED = SharedSplits()
"""What the runs that one process makes, one after the other, share."""


def run_trial(
    trial: Trial,
    folder: Path,
    hardware: Hardware,
    splits: Splits,
    progress: bool = False,
) -> Outcome:
    """Make one run, or go on with it, and measure what it came to.

    Args:
        trial: the run.
        folder: where its folder is.
        hardware: where to run it.
        splits: the data that its settings describe.
        progress: whether to show a bar.
    """
    place = folder / "runs" / trial.name
    snapshots, errors = Snapshots(place / "snapshots"), ErrorCurve(place / "test.csv")

    def watch(epochs: int, classifier: Classifier) -> None:
        if trial.snapshots:
            snapshots.look(epochs, classifier)
        if trial.drawn:
            errors.look(epochs, classifier)

    run = train(
        trial.settings,
        place,
        hardware,
        resume=(place / "last.ckpt").is_file(),
        progress=progress,
        splits=splits,
        watch=watch,
    )
    figures = evaluate(run.checkpoint, splits=run.splits, device=hardware.device)
    # Lightning leaves what it has trained on the host.
    pointing = measure_pointing(run.classifier.to(hardware.device), run.splits.test)
    rows = read_log(run.curves)
    curve = [{key: float(value) for key, value in row.items() if value} for row in rows]
    curve = with_tests(curve, read_error_curve(errors.path))
    return Outcome(
        name=trial.name,
        settings={**trial.settings.as_dict(), "root": None},  # where it lay is nobody's concern
        machine=describe_machine(hardware),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=curve[-1]["seconds"],
        train_loss=curve[-1]["train/loss"],
        test_loss=run.metrics["test/loss"],
        test_error=figures.summary["error"],
        balanced_error=1 - figures.summary["balanced accuracy"],
        pointing={key: float(value) for key, value in asdict(pointing).items()} if pointing else {},
        curve=curve,
    )


def _cost(settings: Settings, data: ImageDataset, hardware: Hardware) -> dict[str, float]:
    size = data.images([0]).sizes[0]
    on_gpu = hardware.on_gpu
    # A CPU has nothing to gain from a large batch, and patience is short.
    shape = Shape(size, data.channels, len(data.classes), settings.batch_size if on_gpu else 2)
    return measure_cost(settings, shape, hardware.device, repeat=20 if on_gpu else 5).as_dict()


def describe_machine(hardware: Hardware) -> str:
    """The machine in a few words."""
    if hardware.on_gpu:
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"{os.cpu_count()} CPU cores ({platform.machine()}), torch {torch.__version__}"


def _check_same(trial: Trial, outcome: Outcome, folder: Path) -> None:
    asked = trial.settings.as_dict()
    saved = Settings.from_dict(outcome.settings).as_dict()
    decisive = [name for name in asked if name != "root" and trial.settings.matters(name)]
    differing = [name for name in decisive if asked[name] != saved[name]]
    if differing:
        raise InputError(
            f"{folder} holds results of {trial.name} with other settings "
            f"({', '.join(differing)}); choose another --out"
        )
