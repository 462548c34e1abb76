"""A run: settings in, a folder with checkpoints, logs and the settings themselves out."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.accelerators import CUDAAccelerator
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger

from foveate.datasets import Splits
from foveate.errors import DataError, InputError
from foveate.training.building import build_model, build_splits
from foveate.training.data import ImageData
from foveate.training.log import EpochLog
from foveate.training.module import Classifier
from foveate.training.settings import Settings

LOG = "metrics.csv"

Watcher = Callable[[int, Classifier], None]


@dataclass(frozen=True)
class Hardware:
    """Where a run runs; it has no say in what comes out, but for rounding.

    Attributes:
        accelerator: cpu, gpu or auto.
        devices: how many of them.
        nodes: how many machines.
        strategy: how processes work together, as Lightning names it.
        precision: as Lightning names it, such as 32-true or bf16-mixed.
        workers: processes that read images.
        compile: auto records the training step as a CUDA graph where one GPU trains on images in
            memory; off never does.
    """

    accelerator: str = "auto"
    devices: str = "auto"
    nodes: int = 1
    strategy: str = "auto"
    precision: str = "32-true"
    workers: int = 0
    compile: str = "auto"

    def __post_init__(self) -> None:
        if self.compile not in ("auto", "off"):
            raise InputError(f"compile must be auto or off, but is {self.compile!r}")


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
    if not resume and last.is_file():
        raise InputError(f"{folder} holds a run already; add --resume or choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    settings.save(folder / "settings.json")

    L.seed_everything(settings.seed, verbose=False)
    splits = splits or build_splits(settings)
    classifier = new_classifier(settings, splits)
    data = ImageData(splits, settings.batch_size, settings.seed, hardware.workers, settings.passes)
    with warnings.catch_warnings():
        _quieten_lightning()
        trainer = _trainer(settings, folder, hardware, patience, progress)
        if watch is not None:
            trainer.callbacks.insert(0, Watch(watch))  # type: ignore[attr-defined]
        if hardware.compile == "auto" and _can_record(trainer):
            classifier.record()
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


def new_classifier(settings: Settings, splits: Splits) -> Classifier:
    """An untrained model for a run."""
    data = splits.train
    counts = torch.bincount(data.labels, minlength=len(data.classes))
    model = build_model(settings, data.channels, len(data.classes))
    return Classifier(model, settings, data.classes, data.channels, counts)


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
    return check_classes(classifier, build_splits(settings))


def check_classes(classifier: Classifier, splits: Splits) -> Splits:
    """Raise unless data has the classes of a model; gives the data back."""
    if splits.train.classes != classifier.classes:
        raise InputError(
            f"the model tells {', '.join(classifier.classes)} apart, but the data has the classes "
            f"{', '.join(splits.train.classes)}; evaluate it on data of its own classes"
        )
    return splits


class Watch(L.Callback):
    """Shows somebody the model between epochs.

    Args:
        watcher: who looks.
    """

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Before the first epoch."""
        self._show(trainer.current_epoch, pl_module)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """After each epoch."""
        self._show(trainer.current_epoch + 1, pl_module)

    def _show(self, epochs: int, module: L.LightningModule) -> None:
        assert isinstance(module, Classifier)
        training = module.training
        with torch.no_grad():
            self.watcher(epochs, module.eval())
        module.train(training)


class ProgressBar(RichProgressBar):
    """Lightning's, without the number of a version that there is none of."""

    def get_metrics(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What to show beside the bar."""
        metrics: dict[str, Any] = super().get_metrics(*args, **kwargs)
        metrics.pop("v_num", None)
        return metrics


def _trainer(
    settings: Settings, folder: Path, hardware: Hardware, patience: int | None, progress: bool
) -> L.Trainer:
    # Written at the end of a whole epoch, so that a resumed run starts the next.
    kept: dict[str, Any] = {"save_on_train_epoch_end": True, "enable_version_counter": False}
    callbacks: list[L.Callback] = [
        ModelCheckpoint(folder, filename="best", monitor="validation/loss", **kept),
        ModelCheckpoint(folder, filename="last", **kept),
        EpochLog(folder / LOG),
    ]
    if patience is not None:
        callbacks.append(EarlyStopping("validation/loss", patience=patience))
    if progress:
        callbacks.append(ProgressBar())
    options: dict[str, Any] = {"accelerator": hardware.accelerator, "devices": hardware.devices}
    if hardware.devices.isdigit():
        options["devices"] = int(hardware.devices)
    return L.Trainer(
        max_epochs=settings.epochs,
        callbacks=callbacks,
        logger=TensorBoardLogger(folder, name="", version="tensorboard"),
        num_nodes=hardware.nodes,
        strategy=hardware.strategy,
        precision=hardware.precision,  # type: ignore[arg-type]
        gradient_clip_val=settings.clip,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        enable_progress_bar=progress,
        enable_model_summary=False,
        log_every_n_steps=1,
        **options,
    )


def _can_record(trainer: L.Trainer) -> bool:
    """Whether steps can be CUDA graphs: on one GPU, without a scaler that looks at gradients."""
    on_gpu = isinstance(trainer.accelerator, CUDAAccelerator)
    return on_gpu and trainer.world_size == 1 and trainer.precision in ("32-true", "bf16-mixed")


def _quieten_lightning() -> None:
    """Hides advice that does not apply: images are read in this process on purpose."""
    for message in (
        ".*does not have many workers.*",
        ".*logging on epoch level in distributed.*",
        ".*Checkpoint directory.*exists and is not empty.*",
        ".*LeafSpec.*is deprecated.*",
    ):
        warnings.filterwarnings("ignore", message=message)
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
