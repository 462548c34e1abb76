"""A run: settings in, a folder with checkpoints, logs and the settings themselves out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import lightning as L
import torch

from foveate.datasets import Splits
from foveate.errors import InputError
from foveate.images import reading_processes, tiles_for_training
from foveate.training.building import build_model, build_splits
from foveate.training.data import ImageData
from foveate.training.module import Classifier
from foveate.training.settings import Settings
from foveate.training.trainer import (
    LOG,
    Hardware,
    Watcher,
    make_trainer,
    quieten_lightning,
    speed_up,
)


@dataclass(frozen=True)
class Run:
    """What a finished run left.

    Attributes:
        folder: where everything is.
        classifier: the model with the weights that were tested.
        splits: the data it saw.
        metrics: loss and error on the test images.
    """

    folder: Path
    classifier: Classifier
    splits: Splits
    metrics: dict[str, float]

    @property
    def checkpoint(self) -> Path:
        """The weights that were tested."""
        return self.folder / f"{self.classifier.settings.keep}.ckpt"

    @property
    def curves(self) -> Path:
        """What was logged after each epoch, as CSV."""
        return self.folder / LOG


def train(
    settings: Settings,
    folder: Path,
    hardware: Hardware | None = None,
    *,
    resume: bool = False,
    patience: int | None = None,
    progress: bool = True,
    splits: Splits | None = None,
    watch: Watcher | None = None,
) -> Run:
    """Train a model and test it.

    Args:
        settings: everything about the run.
        folder: where to leave it.
        hardware: where to run it.
        resume: whether to go on from the folder's last checkpoint.
        patience: stop after as many epochs without a lower validation loss.
        progress: whether to show a progress bar.
        splits: the data, if it is there already.
        watch: called with the number of epochs behind and the model, before the first epoch and
            after each.

    Raises:
        InputError: where the folder holds a run already and `resume` is not asked for, or holds
            none and it is.
    """
    hardware = hardware or Hardware()
    last = folder / "last.ckpt"
    if resume and not last.is_file():
        raise InputError(f"cannot resume: {folder} holds no last.ckpt; leave --resume away")
    if not resume:
        check_unused(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings.save(folder / "settings.json")

    L.seed_everything(settings.seed, verbose=False)
    splits = splits or build_splits(settings)
    classifier = new_classifier(settings, splits)
    data = ImageData(
        splits,
        settings.batch_size,
        settings.seed,
        hardware.workers,
        settings.passes,
        settings.steps_ahead,
    )
    with (
        warnings.catch_warnings(),
        tiles_for_training(splits.spare),
        reading_processes(hardware.chosen_readers),
    ):
        quieten_lightning()
        trainer = make_trainer(settings, folder, hardware, patience, progress, watch)
        speed_up(classifier, trainer, hardware)
        trainer.fit(
            classifier, datamodule=data, ckpt_path=last if resume else None, weights_only=False
        )
        (metrics,) = trainer.test(
            classifier,
            datamodule=data,
            ckpt_path=folder / f"{settings.keep}.ckpt",
            verbose=False,
            weights_only=False,
        )
    return Run(folder, classifier, splits, dict(metrics))


def check_unused(folder: Path) -> None:
    """Raise where a folder holds a run already."""
    if (folder / "last.ckpt").is_file():
        raise InputError(f"{folder} holds a run already; add --resume or choose another --out")


def new_classifier(settings: Settings, splits: Splits) -> Classifier:
    """An untrained model for a run."""
    data = splits.train
    counts = torch.bincount(data.labels, minlength=len(data.classes))
    model = build_model(settings, data.channels, len(data.classes))
    return Classifier(model, settings, data.classes, data.channels, counts)
