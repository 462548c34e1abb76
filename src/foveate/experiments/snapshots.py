"""The attention of a few images as it evolves while a model is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.training import Classifier

IMAGES = 2


class Snapshots:
    """Keeps a model's attention on the first test images, after some of its epochs.

    Args:
        folder: where one file goes for each look.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(self, epochs: int, classifier: Classifier) -> None:
        """Keep the attention as it is after so many epochs."""
        of_all = classifier.settings.epochs
        if epochs not in {0, of_all, *(max(1, round(of_all * part)) for part in (0.05, 0.2, 0.5))}:
            return
        data = classifier.trainer.datamodule.splits.test  # type: ignore[attr-defined]
        images = data.gather(range(min(IMAGES, len(data)))).to(classifier.device).images
        out = classifier(images)
        if out.log_attention is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        np.save(self.folder / f"{epochs:05d}.npy", out.log_attention.exp().cpu().numpy())

    @staticmethod
    def load(folder: Path) -> dict[int, np.ndarray]:
        """Each look's attention (images, h, w), by the epochs behind it."""
        return {int(path.stem): np.load(path) for path in sorted(folder.glob("*.npy"))}
