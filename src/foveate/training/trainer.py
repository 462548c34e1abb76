"""Lightning's trainer as foveate sets it up: where it runs, what it keeps, what it shows."""

from __future__ import annotations

import logging
import os
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

from foveate.errors import InputError
from foveate.images import thread_count
from foveate.training.allocation import keep_freed_memory
from foveate.training.log import EpochLog
from foveate.training.module import Classifier
from foveate.training.settings import Settings

LOG = "metrics.csv"

Watcher = Callable[[int, Classifier], None]
"""Is shown the number of epochs behind, and the model."""


@dataclass(frozen=True)
class Hardware:
    """Where a run runs; it has no say in what comes out, but for rounding.

    Attributes:
        accelerator: cpu, gpu or auto.
        devices: how many of them.
        nodes: how many machines.
        strategy: how processes work together, as Lightning names it.
        precision: as Lightning names it, such as 32-true or bf16-mixed; auto is the latter on a GPU
            that has it. Attention, draws and expectation are float32 in either.
        workers: processes that read images.
        compile: auto records the training step as a CUDA graph where one GPU trains on images in
            memory; full also has torch.compile fuse the networks' layers, which takes a minute
            before the first step; off does neither.
        readers: processes that read patches of files beside the training, so that decoding and
            launching kernels do not wait for each other; None for as many as threads would read
            (see `set_threads`) where a GPU trains, and none elsewhere.
    """

    accelerator: str = "auto"
    devices: str = "auto"
    nodes: int = 1
    strategy: str = "auto"
    precision: str = "auto"
    workers: int = 0
    compile: str = "auto"
    readers: int | None = None

    def __post_init__(self) -> None:
        if self.compile not in ("auto", "full", "off"):
            raise InputError(f"compile must be auto, full or off, but is {self.compile!r}")
        if self.readers is not None and self.readers < 0:
            raise InputError(f"readers must be at least 0, but is {self.readers}")

    @property
    def on_gpu(self) -> bool:
        """Whether a CUDA device will be used."""
        return self.accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()

    @property
    def processes(self) -> int:
        """How many processes it takes on each machine."""
        if "," in self.devices:  # their numbers
            return max(1, sum(bool(number.strip()) for number in self.devices.split(",")))
        if self.devices.isdecimal():
            return max(1, int(self.devices))
        return max(1, torch.cuda.device_count()) if self.on_gpu else 1

    @property
    def device(self) -> torch.device:
        """Where one process by itself computes."""
        return torch.device("cuda" if self.on_gpu else "cpu")

    @property
    def chosen_readers(self) -> int:
        """The number of processes that None stands for."""
        if self.readers is not None:
            return self.readers
        return thread_count() if self.on_gpu and os.name == "posix" else 0

    @property
    def chosen_precision(self) -> str:
        """The precision that `auto` stands for."""
        if self.precision != "auto":
            return self.precision
        half = self.on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
        return "bf16-mixed" if half else "32-true"


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


def make_trainer(
    settings: Settings,
    folder: Path,
    hardware: Hardware,
    patience: int | None = None,
    progress: bool = True,
    watch: Watcher | None = None,
) -> L.Trainer:
    """A trainer that leaves checkpoints and logs in a folder.

    Args:
        settings: the run's.
        folder: where to leave it.
        hardware: where to run it.
        patience: stop after as many epochs without a lower validation loss.
        progress: whether to show a progress bar.
        watch: who is shown the model between epochs.
    """
    # Written at the end of a whole epoch, so that a resumed run starts the next.
    kept: dict[str, Any] = {"save_on_train_epoch_end": True, "enable_version_counter": False}
    callbacks: list[L.Callback] = [
        ModelCheckpoint(folder, filename="best", monitor="validation/loss", **kept),
        ModelCheckpoint(folder, filename="last", **kept),
        EpochLog(folder / LOG),
    ]
    if watch is not None:
        callbacks.append(Watch(watch))
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
        precision=hardware.chosen_precision,  # type: ignore[arg-type]
        gradient_clip_val=settings.clip,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        enable_progress_bar=progress,
        enable_model_summary=False,
        log_every_n_steps=1,
        **options,
    )


def speed_up(classifier: Classifier, trainer: L.Trainer, hardware: Hardware) -> None:
    """Turn on what makes the steps of a run faster where it will run, and changes no result."""
    keep_freed_memory()
    classifier.to(memory_format=torch.channels_last)
    if hardware.compile == "full":
        classifier.fuse()
    # A scaler of gradients would have to look at them, and so would other processes.
    on_gpu = isinstance(trainer.accelerator, CUDAAccelerator)
    known = trainer.precision in ("32-true", "bf16-mixed")
    if hardware.compile != "off" and on_gpu and trainer.world_size == 1 and known:
        classifier.record()


def quieten_lightning() -> None:
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
