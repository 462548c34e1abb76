"""A user's own data on the command line: how far the check is, what was wrong, what was chosen."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from foveate.cli.console import console, show_progress
from foveate.errors import DataError

if TYPE_CHECKING:
    from foveate.datasets import Manifest, Problem, Splits
    from foveate.training import Settings

_SHOWN = 30
"""Problems or classes that are shown; the run's folder has all of them."""


@dataclass(frozen=True)
class OwnData:
    """A user's images, ready to train on.

    Attributes:
        manifest: what was found.
        settings: of the run.
        splits: the images.
    """

    manifest: Manifest
    settings: Settings
    splits: Splits

    def leave(self, folder: Path) -> None:
        """Write what is in which part, and what was wrong, to a run's folder."""
        from foveate.datasets import write_problems

        folder.mkdir(parents=True, exist_ok=True)
        self.manifest.write_split(folder / "split.csv")
        write_problems(self.manifest.problems, folder / "problems.csv")

    def show_failures(self) -> None:
        """Say which files failed during the run, if any did."""
        failed = self.manifest.failures()
        if failed:
            names = ", ".join(map(escape, failed[:_SHOWN])) + ", ..." * (len(failed) > _SHOWN)
            console.print(f"[yellow]left out[/yellow]   {len(failed)} files failed: {names}")


def find_own_data(
    source: Path,
    recipe: str,
    overrides: dict[str, Any],
    room: int,
    strict: bool,
    on_gpu: bool = False,
) -> OwnData:
    """Check a user's images, choose settings for them, and say all that was found.

    Args:
        source: a CSV file or class folders.
        recipe: default or paper.
        overrides: settings that the user gave; None for those that are to be chosen.
        room: bytes of decoded images that may be kept.
        strict: whether any problem is an error.
        on_gpu: whether a GPU trains.

    Raises:
        DataError: for a problem, with `strict`, or where too few images are left.
    """
    from foveate.datasets import Manifest
    from foveate.training.sizing import settings_for_manifest

    with show_progress() as progress:
        manifest = Manifest(source, overrides["seed"], progress=progress)
        # To read ahead is to look twice. A CPU that trains and reads has nothing to gain by it, but
        # where it would wait.
        remote = any(row.is_remote for row in manifest.rows)
        ahead = {"read_ahead": on_gpu or remote} if overrides["read_ahead"] is None else {}
        settings = settings_for_manifest(manifest, recipe, **overrides | ahead)
    return _load(manifest, settings, room, strict)


def find_again(settings: Settings, room: int, strict: bool) -> OwnData:
    """The images of a run that goes on; see `find_own_data`."""
    from foveate.training.building import open_manifest

    with show_progress() as progress:
        manifest = open_manifest(settings, progress)
    return _load(manifest, settings, room, strict)


def _load(manifest: Manifest, settings: Settings, room: int, strict: bool) -> OwnData:
    try:
        with show_progress() as progress:
            splits = manifest.load(settings.overview_size, room, strict, progress)
    finally:
        if manifest.problems:
            _show_problems(manifest.problems)
    if strict and manifest.problems:
        raise DataError(
            f"{manifest.source} has {len(manifest.problems)} problems, listed above; mend them, or "
            "leave --strict away"
        )
    settings = dataclasses.replace(settings, classes=splits.train.classes)
    _show_images(manifest, splits)
    _show_choices(settings)
    return OwnData(manifest, settings, splits)


def _show_problems(problems: Sequence[Problem]) -> None:
    table = Table("where", "problem", "", title=f"{len(problems)} problems", title_justify="left")
    for problem in problems[:_SHOWN]:
        done = "" if problem.left_out else " (kept)"
        table.add_row(escape(problem.where), problem.kind, escape(problem.what) + done)
    console.print(table)
    if len(problems) > _SHOWN:
        kinds = Counter(problem.kind for problem in problems[_SHOWN:])
        rest = ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
        console.print(f"and {rest}; problems.csv in the run's folder has them all")


def _show_images(manifest: Manifest, splits: Splits) -> None:
    parts = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    table = Table("", *parts, title="images", title_justify="left")
    for number, name in enumerate(splits.train.classes[:_SHOWN]):
        counts = [str(int((part.labels == number).sum())) for part in parts.values()]
        table.add_row(escape(name), *counts)
    if len(splits.train.classes) > _SHOWN:
        table.add_row(f"{len(splits.train.classes) - _SHOWN} more classes", *[""] * len(parts))
    table.add_section()
    table.add_row("all", *(str(len(part)) for part in parts.values()))
    console.print(table)

    dealt = " and ".join(manifest.dealt)
    how = f"{dealt}: 15 % each, by label, groups kept together" if dealt else "as the table says"
    console.print(f"parts      {how}")
    sizes = sorted(set(manifest.sizes), key=lambda size: size[0] * size[1])
    between = " to ".join(f"{height}x{width}" for height, width in {sizes[0]: 0, sizes[-1]: 0})
    colour = "colour" if manifest.channels == 3 else "grey"
    kept = manifest.dataset is not None and manifest.dataset.kept.in_memory
    where = "kept in memory" if kept else "read from their files (see --memory)"
    console.print(f"images     {between}, {colour}, {decimal(manifest.bytes)} decoded, {where}")


def _show_choices(settings: Settings) -> None:
    (h, w), (p, q) = settings.overview_size, settings.patch_size
    console.print(
        f"chosen     overview {h}x{w}, {settings.n_patches} patches of {p}x{q}, "
        f"{settings.attention} attention, {settings.feature} features, "
        f"{settings.passes} {'pass' if settings.passes == 1 else 'passes'} an epoch\n"
        "           [dim](--overview-size, --patch-size, --n-patches, --attention, --feature, "
        "--passes choose otherwise)[/dim]",
        soft_wrap=True,
    )
