"""Any of the models as a LightningModule: its loss, its optimiser, what it reports.

Chance is a function of seed, epoch, step and process alone. So a run that stops and goes on from
its last epoch ends at the weights of one that never stopped. Where to look is drawn for the
combined batch, and so does not depend on how many processes share it.
"""

from __future__ import annotations

import inspect
from typing import Any

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import Optimizer
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

from foveate.datasets import Batch
from foveate.errors import InputError
from foveate.images import AheadBatch, AugmentedBatch, Choice, ImageBatch, SeenBatch, Variation
from foveate.models import AttentionSampling, guidance
from foveate.sampling import entropy
from foveate.sampling.chance import Share
from foveate.training.ahead import ReadAhead
from foveate.training.data import Upcoming, processes, rank
from foveate.training.recording import RecordedLook, RecordedStep, Values
from foveate.training.settings import Settings
from foveate.types import Glance, Prediction

_MEASURED = ("loss", "error", "entropy")
"""What is reported of the steps of an epoch; a model without attention has no entropy."""


class Classifier(L.LightningModule):
    """Trains a model by cross-entropy, with the entropy of its attention as a regulariser.

    Args:
        model: maps images to a `Prediction`.
        settings: the run's.
        classes: the name of each class.
        channels: channels of the images.
        class_counts: training images of each class, for class weights; not needed to predict.
    """

    class_weight: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        classes: tuple[str, ...],
        channels: int,
        class_counts: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters(
            {"settings": settings.as_dict(), "classes": list(classes), "channels": channels}
        )
        self.classes = classes
        self.channels = channels
        self.model = model
        self.settings = settings
        weight = None
        if settings.class_weights and class_counts is not None:
            inverse = class_counts.sum() / class_counts.clamp(min=1)
            weight = inverse / inverse.mean()
        self.register_buffer("class_weight", weight, persistent=False)
        self._takes_chance = "generator" in inspect.signature(model.forward).parameters
        # Micro average: each image counts once, whatever its class and process.
        self.accuracy = MulticlassAccuracy(len(classes), average="micro")
        self.mean_loss = MeanMetric(nan_strategy="disable")  # NaN is to be seen
        self._totals: Tensor | None = None
        self._ahead = self._read_ahead()
        self._recorded: RecordedStep | None = None
        self._recorded_look: RecordedLook | None = None
        self._replayed = False
        self.register_load_state_dict_pre_hook(_rename_bent)  # type: ignore[no-untyped-call]

    @property
    def draws(self) -> bool:
        """Whether the model looks at some of an image only, which chance may choose."""
        return isinstance(self.model, AttentionSampling)

    def forward(
        self,
        images: ImageBatch,
        generator: torch.Generator | None = None,
        glance: Glance | None = None,
    ) -> Prediction:
        """The model's prediction."""
        options: dict[str, Any] = {"generator": generator} if self._takes_chance else {}
        if glance is not None:
            options["glance"] = glance
        out: Prediction = self.model(images, **options)
        return out

    def on_train_epoch_start(self) -> None:
        """Makes what is random in layers, such as dropout, depend on seed and epoch alone."""
        torch.manual_seed(self._chance(self.current_epoch, self.global_rank))
        self._ahead.forget()

    def training_step(self, batch: Upcoming, number: int) -> Tensor:
        """One step: cross-entropy minus λ H(a)."""
        step = self.global_step
        self._ahead.begin(batch.following, step + 1, self.device)
        ready = self._ahead.take(batch.batch, step, self.device)
        recorded = self._recorded if len(ready.images.sources) > 0 else None
        self._replayed = recorded is not None
        if recorded is None:
            values = self.objective(ready.images, ready.labels, self._generator(step))
        else:
            if not recorded.knows(ready.images):
                self._ahead.settle()  # meanwhile no thread may ask for memory of the device
            values = recorded(ready.images, ready.labels, self._draw_seed(step))
        measured = torch.stack([values[name].detach() for name in _MEASURED if name in values])
        self._totals = measured if self._totals is None else self._totals + measured
        return values["objective"]

    def objective(self, images: ImageBatch, labels: Tensor, generator: torch.Generator) -> Values:
        """What a step measures of a batch; `objective` is what it makes smaller."""
        glance = images.glance if isinstance(images, SeenBatch) else None
        out = self(images, generator, glance)
        cross_entropy = F.cross_entropy(out.logits, labels, weight=self.class_weight)
        wrong = (out.logits.detach().argmax(-1) != labels).float().mean()
        values = {"objective": cross_entropy, "loss": cross_entropy, "error": wrong}
        smoothing = self.settings.label_smoothing
        if smoothing > 0:
            values["objective"] = F.cross_entropy(
                out.logits, labels, weight=self.class_weight, label_smoothing=smoothing
            )
        if out.log_attention is not None:
            uncertainty = entropy(out.log_attention).mean()
            values["objective"] = values["objective"] - self.settings.entropy * uncertainty
            values["entropy"] = uncertainty
            if self.settings.guidance > 0 and self.settings.method == "ats":
                missed = self._missed_hints(images, out.log_attention)
                values["objective"] = values["objective"] + self.settings.guidance * missed
        return values

    def _missed_hints(self, images: ImageBatch, log_attention: Tensor) -> Tensor:
        hints, model = images.hints, self.model
        if hints is None or not isinstance(model, AttentionSampling):
            return log_attention.new_zeros(())
        grid = model.cell_grid(log_attention)
        return guidance(log_attention, hints, grid, images.sizes[0], model.patch_size)

    def fuse(self, backend: str = "inductor") -> None:
        """From now on have torch.compile fuse the layers of the networks.

        That of attention is left as it is: its layers have kernels of their own.
        """
        for name, network in self.model.named_children():
            if name != "attention":
                network.compile(backend=backend)

    def record(self) -> None:
        """From now on replay the step from a recording, where images are read from tensors."""
        self._recorded = RecordedStep(self.objective, self, self.settings.clip)
        if isinstance(self.model, AttentionSampling):
            self._recorded_look = RecordedLook(self._choose)

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """The gradient, where a replayed step has not left it already."""
        if not self._replayed:
            super().backward(loss, *args, **kwargs)

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Optimizer) -> None:
        """Forgets the last gradient, where a replayed step has not overwritten it already."""
        if not self._replayed:
            super().optimizer_zero_grad(epoch, batch_idx, optimizer)

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Bounds the gradient's norm, where a replayed step has not done so already.

        Lightning refuses that under mixed precision with a fused optimiser, for the sake of a
        scaler that bfloat16 does not have.
        """
        if getattr(self.trainer.precision_plugin, "scaler", None) is not None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
        elif gradient_clip_val and not self._replayed:
            nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)

    def on_train_batch_end(self, outputs: Any, batch: Upcoming, number: int) -> None:
        """Reports the means over an epoch at its last step."""
        if self.trainer.is_last_batch and self._totals is not None:
            means = (self._totals / (number + 1)).unbind()
            log = {f"train/{name}": mean for name, mean in zip(_MEASURED, means, strict=False)}
            self.log_dict(log, prog_bar=True, on_step=True, on_epoch=False, sync_dist=True)
            self._totals = None

    def _read_ahead(self) -> ReadAhead:
        settings = self.settings
        # Carried over to other attention, what is biased would be biased otherwise.
        reads = settings.read_ahead and settings.sampler != "topk" and self.draws
        return ReadAhead(
            settings.overview_size,
            settings.patch_size,
            self._vary,
            self._look if reads else None,
            settings.steps_ahead,
        )

    def _look(self, images: AheadBatch, step: int) -> Choice:
        """Where to look in the images of a coming step, with its own chance."""
        seen = images.overviewed()
        if self._recorded_look is None:
            return self._choose(seen, self._generator(step))
        if not self._recorded_look.knows(seen):
            self._ahead.settle()  # meanwhile no thread may ask for memory of the device
        return self._recorded_look(seen, self._draw_seed(step))

    def _choose(self, images: SeenBatch, generator: torch.Generator) -> Choice:
        assert isinstance(self.model, AttentionSampling)
        glance = self.model.look(images, generator)
        return Choice.of(glance, images.locate(glance.yx_level0, self.model.patch_size))

    def _vary(self, images: ImageBatch, step: int) -> ImageBatch:
        """The images of a step as the model will see them."""
        if not self.settings.augment:
            return images
        size = self.settings.overview_size
        free = self.settings.any_way_up
        square = all(height == width for height, width in [size, self.settings.patch_size])
        turns = free and square and images.square
        share = self._share(torch.device("cpu"), self._chance(step, 0))
        variation = Variation.draw(
            len(images), size, share, tint=self.settings.tint, mirror=free, turn=turns
        )
        return AugmentedBatch(images, variation, size, turns)

    def _generator(self, step: int) -> torch.Generator:
        return self._share(self.device, self._draw_seed(step))

    @staticmethod
    def _share(device: torch.device, seed: int) -> torch.Generator:
        share = Share(device, rank(), processes())
        share.manual_seed(seed)
        return share

    def _draw_seed(self, step: int) -> int:
        return self._chance(step, 1)

    def on_train_epoch_end(self) -> None:
        """Ends a run that has gone wrong, rather than training on NaN."""
        loss = self.trainer.callback_metrics.get("train/loss")
        if loss is not None and not loss.isfinite():
            raise InputError(
                f"training diverged: the loss of epoch {self.current_epoch + 1} is {loss.item()}; "
                "lower the learning rate, or check the images for values that are not finite"
            )

    def validation_step(self, batch: Batch, number: int) -> None:
        """Loss and error without chance."""
        self._evaluate(batch)

    def test_step(self, batch: Batch, number: int) -> None:
        """Loss and error without chance."""
        self._evaluate(batch)

    def _evaluate(self, batch: Batch) -> None:
        out = self(batch.images)
        self.mean_loss.update(F.cross_entropy(out.logits, batch.labels, reduction="none"))
        self.accuracy.update(out.logits, batch.labels)

    def on_validation_epoch_end(self) -> None:
        """Reports validation loss and error."""
        self._report("validation")

    def on_test_epoch_end(self) -> None:
        """Reports test loss and error."""
        self._report("test")

    def _report(self, part: str) -> None:
        self.log(f"{part}/loss", self.mean_loss.compute())
        self.log(f"{part}/error", 1 - self.accuracy.compute(), prog_bar=True)
        self.mean_loss.reset()
        self.accuracy.reset()

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """AdamW on one cycle, or the paper's Adam."""
        settings = self.settings
        fused = self.device.type == "cuda" or None  # one launch; None is torch's own choice
        if settings.recipe == "paper":
            return torch.optim.Adam(self.parameters(), lr=settings.learning_rate, fused=fused)
        optimiser = torch.optim.AdamW(
            self.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=fused,
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser,
            max_lr=settings.learning_rate,
            total_steps=int(self.trainer.estimated_stepping_batches),
        )
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _chance(self, moment: int, stream: int) -> int:
        """A seed for one moment of one stream of this run."""
        words = [self.settings.seed, moment, stream]
        value = 0
        for word in words:
            value = (value * 6364136223846793005 + word + 1442695040888963407) % 2**63
        return value


def _rename_bent(module: nn.Module, state: dict[str, Tensor], *about: object) -> None:
    """Jitter was a layer before the feature network, whose weights had other names for it."""
    now, then = "model.feature.", "model.feature.1."
    names = [name for name in state if name.startswith(now)]
    if all(name.startswith(then) for name in names):
        for name in names:
            state[now + name.removeprefix(then)] = state.pop(name)
