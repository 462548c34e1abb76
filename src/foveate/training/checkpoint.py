"""The way back from a checkpoint: its model, and the data it was trained on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from foveate.datasets import Splits
from foveate.errors import DataError, InputError
from foveate.training.building import build_model, build_splits
from foveate.training.module import Classifier
from foveate.training.settings import Settings

_ROOM = 2**31
"""Bytes of decoded images that are kept: to be looked at a few times, more are not worth it."""


def load_classifier(checkpoint: Path) -> Classifier:
    """A trained model, ready to predict.

    Args:
        checkpoint: what `train` wrote.

    Raises:
        DataError: where the file is no checkpoint of foveate's.
    """
    if not checkpoint.is_file():
        raise DataError(f"there is no checkpoint {checkpoint}; `foveate train` writes best.ckpt")
    try:
        content = torch.load(checkpoint, map_location="cpu", weights_only=False)
        about = content["hyper_parameters"]
        settings = Settings.from_dict(about["settings"])
        classes, channels = tuple(about["classes"]), int(about["channels"])
        model = build_model(settings, channels, len(classes))
        classifier = Classifier(model, settings, classes, channels)
        # Class weights are of use in training only.
        state = {k: v for k, v in content["state_dict"].items() if k != "class_weight"}
        classifier.load_state_dict(state)
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{checkpoint} is no checkpoint of foveate's, or is damaged ({type(error).__name__}); "
            "name a best.ckpt or last.ckpt that `foveate train` wrote"
        ) from error
    return classifier.eval()


def load_splits(classifier: Classifier, moved: dict[str, str | None] | None = None) -> Splits:
    """The data that a model was trained on, or other data of its classes.

    Args:
        classifier: the model.
        moved: settings that differ from the model's: another root or dataset. None is no
            difference.

    Raises:
        InputError: where the data has other classes than the model.
    """
    changes: dict[str, Any] = {k: v for k, v in (moved or {}).items() if v is not None}
    if changes.get("dataset") == "manifest":
        # What the model knows is what can be told apart, in its own order.
        changes |= {"classes": classifier.classes, "channels": classifier.channels}
    settings = dataclasses.replace(classifier.settings, **changes)
    return check_classes(classifier, build_splits(settings, memory=_ROOM))


def check_classes(classifier: Classifier, splits: Splits) -> Splits:
    """Raise unless data has the classes of a model; gives the data back."""
    if splits.train.classes != classifier.classes:
        raise InputError(
            f"the model tells {', '.join(classifier.classes)} apart, but the data has the classes "
            f"{', '.join(splits.train.classes)}; evaluate it on data of its own classes"
        )
    return splits
