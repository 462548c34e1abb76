"""Any of the models as a LightningModule: its loss, its optimiser, what it reports.

Chance is a function of seed, epoch, step and process alone. So a run that stops and goes on from
its last epoch ends at the weights of one that never stopped.
"""

from __future__ import annotations

import inspect
from typing import Any

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

from foveate.datasets import Batch
from foveate.errors import InputError
from foveate.images import AugmentedBatch, ImageBatch, Variation
from foveate.sampling import entropy
from foveate.training.settings import Settings
from foveate.types import Prediction


class Classifier(L.LightningModule):
    """Trains a model by cross-entropy, with the entropy of its attention as a regulariser.

    Args:
        model: maps images to a `Prediction`.
        settings: the run's.
        classes: the name of each class.
        class_counts: training images of each class, for class weights.
    """

    class_weight: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        classes: tuple[str, ...],
        class_counts: Tensor,
    ) -> None:
        super().__init__()
        self.save_hyperparameters({"settings": settings.as_dict(), "classes": list(classes)})
        self.model = model
        self.settings = settings
        weight = None
        if settings.class_weights:
            inverse = class_counts.sum() / class_counts.clamp(min=1)
            weight = inverse / inverse.mean()
        self.register_buffer("class_weight", weight, persistent=False)
        self.draws = "generator" in inspect.signature(model.forward).parameters
        # Micro average: each image counts once, whatever its class and process.
        self.accuracy = MulticlassAccuracy(len(classes), average="micro")
        self.mean_loss = MeanMetric(nan_strategy="disable")  # NaN is to be seen

    def forward(self, images: ImageBatch, generator: torch.Generator | None = None) -> Prediction:
        """The model's prediction."""
        out: Prediction = (
            self.model(images, generator=generator) if self.draws else self.model(images)
        )
        return out

    def on_train_epoch_start(self) -> None:
        """Makes what is random in layers, such as dropout, depend on seed and epoch alone."""
        torch.manual_seed(self._chance(self.current_epoch, self.global_rank))

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """One step: cross-entropy minus λ H(a)."""
        generator = torch.Generator(self.device)
        generator.manual_seed(self._chance(self.global_step, self.global_rank + 1))
        images = self._augmented(batch.images) if self.settings.augment else batch.images
        out = self(images, generator)
        cross_entropy = F.cross_entropy(out.logits, batch.labels, weight=self.class_weight)
        loss = cross_entropy
        log: dict[str, Any] = {"loss": cross_entropy.detach()}
        if out.log_attention is not None:
            uncertainty = entropy(out.log_attention).mean()
            loss = loss - self.settings.entropy * uncertainty
            log["entropy"] = uncertainty.detach()
        error = (out.logits.detach().argmax(-1) != batch.labels).float().mean()
        log["error"] = error
        self.log_dict(
            {f"train/{name}": value for name, value in log.items()},
            prog_bar=True,
            on_step=False,
            on_epoch=True,
            batch_size=len(batch),
        )
        return loss

    def _augmented(self, images: ImageBatch) -> ImageBatch:
        generator = torch.Generator().manual_seed(self._chance(self.global_step, -self.global_rank))
        size = self.settings.overview_size
        return AugmentedBatch(images, Variation.draw(len(images), size, generator), size)

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
        if settings.recipe == "paper":
            return torch.optim.Adam(self.parameters(), lr=settings.learning_rate)
        optimiser = torch.optim.AdamW(
            self.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
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
