"""All that decides a run: saved with it, and enough to repeat it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.errors import DataError, InputError
from foveate.types import Size

METHODS = ("ats", "mil", "cnn", "uniform")
RECIPES = ("default", "paper")
KEEP = ("best", "last")
ROADS = ("speed-limits", "gtsdb-speed-limits")
ASKED_BY = {
    **dict.fromkeys(("n_patches", "sampler", "read_ahead", "steps_ahead"), ("ats", "uniform")),
    **dict.fromkeys(("attention", "prior", "smoothing", "curiosity", "guidance"), ("ats",)),
    **dict.fromkeys(("jitter", "feature"), ("ats", "uniform", "mil")),
    **dict.fromkeys(("grid", "gated"), ("mil",)),
    "scale": ("cnn",),
}
"""Settings that have a say in some methods only, and those methods."""
STEPS_AHEAD = 3
"""Patches that take as long to read as three steps to compute are there in time."""
SAMPLERS = ("systematic", "unordered", "sequential", "replacement", "topk")


@dataclass(frozen=True)
class Settings:
    """Everything about a run.

    Attributes:
        dataset: which data set.
        root: the folder it lies in, for one that is not made on the spot; of a manifest, the CSV
            file or the class folders.
        method: ats (attention sampling), mil (deep MIL), cnn, or uniform (blind sampling).
        recipe: default (AdamW, one cycle, contrast prior) or paper (Adam, no prior).
        seed: decides weights, order and draws; the data set too.
        fold: which fold is the test part, for a data set that is cross-validated.
        images: train on so many images only, and validate and test on a fifth of it; None is all.
        painted: how many photographs of roads with painted signs join the training part; of the two
            data sets of speed limits only.
        keep: best (by validation loss) or last: the weights that are tested and kept.
        epochs: how often to validate, and to save what was reached.
        passes: how often an epoch goes through the training images; above 1 where they are few.
        batch_size: images in a step.
        learning_rate: the largest.
        weight_decay: of AdamW.
        entropy: λ, how much high entropy of the attention is worth.
        guidance: how much it is worth that attention is on painted signs.
        clip: the largest norm of a gradient.
        class_weights: whether rare classes count more.
        label_smoothing: the share of a label that is spread over all classes. A model that is
            never wholly right goes on learning what patches of no class look like.
        augment: whether brightness, contrast and position vary.
        tint: how far colours vary apart, with `augment`, in images of three channels.
        any_way_up: whether, with `augment`, images are mirrored and turned too.
        jitter: how far patches are turned (radians), scaled and slanted (shares) in training.
        n_patches: patches drawn from an image.
        patch_size: their height and width.
        overview_size: height and width of the overview.
        grid: rows and columns of patches, for deep MIL.
        gated: whether deep MIL's attention is gated.
        scale: what images are scaled by, for the CNN.
        sampler: how cells are drawn.
        prior: whether attention starts at contrast.
        smoothing: ε of the attention.
        curiosity: the share of the attention that goes to contrast in training.
        read_ahead: whether patches of images in files are read while steps before theirs are
            trained on, chosen by attention that is so many steps old. Unbiased all the same, but
            not the same draws. It has no say where images are in memory.
        steps_ahead: how many steps; more keep more cores busy.
        attention: conv (the paper's, a cell a pixel), deep (the same, larger), pooled (the paper's,
            a cell 8 pixels wide) or coarse (4 pixels wide).
        feature: conv, deep (the same, larger), small, lenet, ilse, resnet8 (the paper's for speed
            limits) or resnet8-max (wider, and the maximum over a patch, not the mean).
        classes: the labels of a manifest that are told apart, in order; None for all.
        channels: that a manifest's images are opened with, 3 or 1.
        fingerprint: of a manifest's rows, where its parts were dealt out by chance: what is
            trained on must not come up in the test because rows were added.
    """

    dataset: str = "digits"
    root: str | None = None
    method: str = "ats"
    recipe: str = "default"
    seed: int = 0
    fold: int = 0
    images: int | None = None
    painted: int = 0
    keep: str = "best"
    epochs: int = 10
    passes: int = 1
    batch_size: int = 32
    learning_rate: float = 1e-2
    weight_decay: float = 1e-4
    entropy: float = 1e-4
    guidance: float = 0.0
    clip: float = 1.0
    class_weights: bool = False
    label_smoothing: float = 0.0
    augment: bool = False
    tint: float = 0.0
    any_way_up: bool = False
    jitter: float = 0.0
    n_patches: int = 10
    patch_size: Size = (32, 32)
    overview_size: Size = (100, 100)
    grid: Size = (40, 40)
    gated: bool = False
    scale: float = 1.0
    sampler: str = "systematic"
    prior: bool = True
    smoothing: float = 1e-5
    curiosity: float = 0.0
    read_ahead: bool = True
    steps_ahead: int = STEPS_AHEAD
    attention: str = "conv"
    feature: str = "conv"
    classes: tuple[str, ...] | None = None
    channels: int = 3
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        choices = {"method": METHODS, "recipe": RECIPES, "sampler": SAMPLERS, "keep": KEEP}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise InputError(
                    f"unknown {name} {getattr(self, name)!r}; choose one of {', '.join(known)}"
                )
        for name in ("epochs", "passes", "batch_size", "n_patches", "steps_ahead"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, but is {getattr(self, name)}")
        if self.images is not None and self.images < 10:
            raise InputError(f"images must be at least 10, but is {self.images}")
        if not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"label_smoothing is a share, from 0 to below 1, but is {self.label_smoothing}"
            )
        if self.painted < 0 or (self.painted and self.dataset not in ROADS):
            raise InputError(
                f"painted must be 0 or more, and 0 but for {' and '.join(ROADS)}, "
                f"but is {self.painted} for {self.dataset}"
            )
        if self.learning_rate <= 0:
            raise InputError(f"learning_rate must be above 0, but is {self.learning_rate}")

    def matters(self, name: str) -> bool:
        """Whether a setting has a say in this run.

        Example:
            >>> settings = Settings("digits", method="cnn")
            >>> settings.matters("scale"), settings.matters("n_patches")
            (True, False)
        """
        return self.method in ASKED_BY.get(name, METHODS)

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return dataclasses.asdict(self)

    def save(self, path: Path) -> None:
        """Write them as JSON."""
        path.write_text(json.dumps(self.as_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Settings:
        """The way back from `save`.

        Raises:
            DataError: where the file is missing or damaged.
        """
        try:
            values = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise DataError(
                f"cannot read the settings of a run from {path} ({type(error).__name__}); "
                "name the folder of a run that `foveate train` wrote"
            ) from error
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """The way back from `as_dict`, also after a trip through JSON."""
        unknown = set(values) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise DataError(
                f"settings of another version of foveate: {', '.join(sorted(unknown))} unknown; "
                "use the version that wrote them"
            )
        # JSON has lists for tuples.
        plain: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
        }
        return cls(**plain)
