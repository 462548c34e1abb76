"""The settings of each data set, by the default recipe and by the paper's."""

from __future__ import annotations

from typing import Any

from foveate.errors import InputError
from foveate.training.settings import Settings

PRESETS: dict[str, dict[str, Any]] = {
    "digits": {"feature": "small", "batch_size": 16, "epochs": 12},
    "megapixel-mnist": {
        "patch_size": (50, 50),
        "overview_size": (180, 180),
        "grid": (30, 30),
        "batch_size": 32,
        "epochs": 20,
        "weight_decay": 5e-2,
        "label_smoothing": 0.1,
        "curiosity": 0.2,
        "jitter": 0.1,
        "keep": "last",  # its loss rises where labels are smooth, though its error does not
        "attention": "deep",
        "feature": "deep",
    },
    "colon-cancer": {
        "patch_size": (48, 48),
        "overview_size": (100, 100),
        "grid": (50, 50),
        "batch_size": 10,
        "passes": 25,
        "epochs": 20,
        "keep": "last",  # nine images are too few to choose by
        "learning_rate": 3e-3,
        "weight_decay": 5e-2,
        "attention": "coarse",
        "feature": "conv",
        "entropy": 1e-3,
        "augment": True,
        "tint": 0.05,
        "any_way_up": True,
        "jitter": 0.2,
    },
    "speed-limits": {
        "patch_size": (100, 100),
        "overview_size": (288, 384),
        "grid": (12, 16),
        "n_patches": 5,
        "batch_size": 32,
        "epochs": 60,
        "learning_rate": 3e-3,
        "attention": "pooled",
        "feature": "resnet8",
        "smoothing": 1e-4,
        "entropy": 5e-2,
        "class_weights": True,
        "augment": True,
    },
    "manifest": {
        "batch_size": 16,
        "epochs": 30,
        "learning_rate": 3e-3,
        "entropy": 1e-2,
        "class_weights": True,
        "augment": True,
        "attention": "deep",
        "feature": "deep",
    },
}
PRESETS["gtsdb-speed-limits"] = PRESETS["speed-limits"] | {
    "overview_size": (240, 408),
    "patch_size": (64, 64),
    "grid": (13, 22),
    "n_patches": 10,
    "painted": 4000,  # of some limits there are a dozen photographs
    "guidance": 0.1,
    "class_weights": False,  # painted images have as many of each class
    "epochs": 30,
    "weight_decay": 1e-2,
    "entropy": 1e-2,
    "feature": "resnet8-max",
}
"""What differs from `Settings`' own defaults for each data set."""

FEW = 10
FEW_PATCHES: dict[str, dict[str, Any]] = {
    "megapixel-mnist": {"learning_rate": 5e-3, "curiosity": 0.1, "batch_size": 16}
}
"""What differs from the presets where fewer patches than `FEW` are drawn: with 5, the rate that is
good for 10 makes Megapixel MNIST forget late in training what it has learnt, and twice the updates
teach it to know new noise for noise."""

PAPER: dict[str, Any] = {
    "prior": False,
    "jitter": 0.0,
    "label_smoothing": 0.0,
    "curiosity": 0.0,
    "painted": 0,
    "guidance": 0.0,
    "sampler": "sequential",
    "learning_rate": 1e-3,
    "attention": "conv",
}
_ROADS_OF_PAPER: dict[str, Any] = {
    "attention": "pooled",
    "feature": "resnet8",
    "patch_size": (100, 100),
    "n_patches": 5,
}
PAPER_PRESETS: dict[str, dict[str, Any]] = {
    "digits": {"feature": "lenet"},
    "megapixel-mnist": {"feature": "lenet"},
    "colon-cancer": {"feature": "ilse", "patch_size": (27, 27)},
    "speed-limits": _ROADS_OF_PAPER,
    "gtsdb-speed-limits": _ROADS_OF_PAPER | {"grid": (12, 16)},
}
"""What the paper's recipe changes in all presets, and in each."""


def settings_for(dataset: str, recipe: str = "default", **overrides: Any) -> Settings:
    """The settings of a data set and recipe, with some of them overridden; None overrides nothing.

    Example:
        >>> settings_for("megapixel-mnist", n_patches=5, epochs=None).epochs
        20
    """
    if dataset not in PRESETS:
        raise InputError(f"unknown data set {dataset!r}; choose one of {', '.join(PRESETS)}")
    values = dict(PRESETS[dataset])
    if recipe == "default" and (overrides.get("n_patches") or FEW) < FEW:
        values |= FEW_PATCHES.get(dataset, {})
    if recipe == "paper":
        values |= PAPER | PAPER_PRESETS.get(dataset, {})
    given = {name: value for name, value in overrides.items() if value is not None}
    if not given.get("prior", True):
        values["curiosity"] = 0.0  # it looks where the prior does
    values |= given
    return Settings(dataset=dataset, recipe=recipe, **values)
