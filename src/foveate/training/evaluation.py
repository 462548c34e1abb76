"""Measuring a trained model."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc

from foveate.datasets import Splits
from foveate.errors import InputError
from foveate.training.checkpoint import check_classes, load_classifier, load_splits
from foveate.training.data import ImageData
from foveate.training.module import Classifier
from foveate.training.trainer import Hardware
from foveate.types import Float


@dataclass(frozen=True)
class Figures:
    """How good a model is.

    Attributes:
        classes: the name of each class.
        summary: error, balanced accuracy and, for two classes, AUROC; the mean over draws.
        spread: the standard deviation of each over draws.
        confusion: how often each true class (row) was called each class (column), over all draws.
        probabilities: of each class for each image; the mean over draws.
    """

    classes: tuple[str, ...]
    summary: dict[str, float]
    spread: dict[str, float]
    confusion: list[list[int]]
    probabilities: Float[Tensor, "N k"] = field(compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, without those of each image."""
        kept = ("classes", "summary", "spread", "confusion")
        return {name: getattr(self, name) for name in kept}


def evaluate(
    checkpoint: Path,
    part: str = "test",
    draws: int = 0,
    moved: dict[str, str | None] | None = None,
    splits: Splits | None = None,
    device: torch.device | str | None = None,
) -> Figures:
    """Measure a trained model on a part of its data.

    Args:
        checkpoint: what `train` wrote.
        part: train, validation or test.
        draws: how many random draws to average over; 0 draws without chance.
        moved: settings that differ from the checkpoint's: another root or dataset.
        splits: the data, if it is there already.
        device: where; a GPU by default, if there is one.
    """
    if part not in ("train", "validation", "test"):
        raise InputError(f"unknown part {part!r}; choose train, validation or test")
    if draws < 0:
        raise InputError(f"draws must be 0 or more, but is {draws}")
    classifier = load_classifier(checkpoint)
    splits = check_classes(classifier, splits) if splits else load_splits(classifier, moved)
    if draws > 0 and not classifier.draws:
        raise InputError(f"a {classifier.settings.method} model draws nothing; leave draws at 0")
    parts = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    dataset = parts[part]
    data = ImageData(Splits(dataset, dataset, dataset), classifier.settings.batch_size)

    classifier.to(device or Hardware().device).eval()
    results = []
    probabilities = torch.zeros(len(dataset), len(dataset.classes))
    confusion = torch.zeros(len(dataset.classes), len(dataset.classes), dtype=torch.int64)
    for number in range(max(draws, 1)):
        generator = torch.Generator().manual_seed(number) if draws else None
        logits = logits_of(classifier, data, generator).cpu()
        results.append(_summary(logits, dataset.labels))
        probabilities += logits.float().softmax(-1) / max(draws, 1)
        pairs = dataset.labels * len(dataset.classes) + logits.argmax(-1)
        confusion += torch.bincount(pairs, minlength=confusion.numel()).view_as(confusion)
    names = list(results[0])
    summary = {name: statistics.mean(result[name] for result in results) for name in names}
    spread = (
        {name: statistics.stdev(result[name] for result in results) for name in names}
        if draws > 1
        else {}
    )
    return Figures(dataset.classes, summary, spread, confusion.tolist(), probabilities)


@torch.no_grad()
def logits_of(
    classifier: Classifier, data: ImageData, generator: torch.Generator | None = None
) -> Float[Tensor, "N k"]:
    """The logits of all test images, where the model is, which must be in `eval()`.

    Args:
        classifier: the model.
        data: whose test images.
        generator: draws at random; None draws without chance.
    """
    device = classifier.device
    batches = data.test_dataloader()
    return torch.cat([classifier(batch.to(device).images, generator).logits for batch in batches])


def _summary(logits: Tensor, labels: Tensor) -> dict[str, float]:
    right = logits.argmax(-1) == labels
    recall = [right[labels == label].float().mean().item() for label in labels.unique()]
    summary = {
        "error": 1 - right.float().mean().item(),
        "balanced accuracy": statistics.mean(recall),
    }
    if logits.shape[-1] == 2:
        summary["AUROC"] = binary_auroc(logits[:, 1] - logits[:, 0], labels).item()
    return summary
