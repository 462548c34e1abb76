"""Which noise of Megapixel MNIST a model looks at, and what that has to do with its errors.

    python benchmarks/noise_patterns.py RUN/last.ckpt [--root MNIST] [--sets 16]

Each part of the data set has 50 patterns of noise of its own. For the validation and the test part:
the error, which digits wrong answers name, and for the patterns that draw most of the attention how
much of it they draw in a mean image, and how much more often images that show them are mistaken.
Then the error on other sets of noise with the same test digits: 50 patterns are few, and the error
of one test part has much to do with which they are.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import torch
from torch import Tensor

from foveate.datasets import PlacedDataset
from foveate.datasets.megapixel_mnist import PAPER, load_mnist
from foveate.training import Classifier, build_splits, load_classifier

PATTERNS = 50
ELSEWHERE = 10**6
"""Seeds from here on are of no data set."""
AT_A_TIME = 50


@torch.no_grad()
def looked_at(classifier: Classifier, data: PlacedDataset) -> tuple[Tensor, Tensor]:
    """The predicted class of each image, and the attention on each pattern in it."""
    device = next(classifier.parameters()).device
    side, first = data.glyphs.shape[-1], len(data.glyphs) - PATTERNS
    digits = data.decisive
    half = torch.tensor(classifier.settings.patch_size) / 2
    called, mass = [], torch.zeros(len(data), PATTERNS)
    for start in range(0, len(data), AT_A_TIME):
        index = range(start, min(start + AT_A_TIME, len(data)))
        out = classifier(data.gather(index).to(device).images)
        called.append(out.logits.argmax(-1).cpu())
        for row, image in enumerate(index):
            centre = out.yx_level0[row].cpu() + half
            middle = data.placements.yx_level0[image] + side / 2
            distance = (centre[:, None] - middle[None]).abs().amax(-1)
            nearest, where = distance.min(1)
            noise = (nearest <= side * 0.7) & (where >= digits)
            pattern = data.placements.glyph[image][where[noise]] - first
            mass[image].index_add_(0, pattern, out.draw.weight[row].cpu()[noise].float())
    return torch.cat(called), mass


def describe(classifier: Classifier, data: PlacedDataset, most: int) -> None:
    """Print a table for a part of the data set."""
    called, mass = looked_at(classifier, data)
    wrong = called != data.labels
    names = torch.bincount(called[wrong], minlength=len(data.classes)).tolist()
    print(f"error {wrong.float().mean():.1%}; wrong answers name 0 to 9: {names}")
    print(f"attention on noise: {mass.sum(1).mean():.3f}\n\n| pattern | attention | error |")
    print("|---|---|---|")
    shown = data.placements.glyph[:, data.decisive :] - (len(data.glyphs) - PATTERNS)
    for pattern in mass.mean(0).topk(most).indices.tolist():
        has = (shown == pattern).any(1)
        more = wrong[has].float().mean() - wrong[~has].float().mean()
        print(f"| {pattern} | {mass[:, pattern].mean():.3f} | {100 * more:+.1f} points |")


@torch.no_grad()
def errors_elsewhere(classifier: Classifier, root: str, sets: int, images: int = 300) -> Tensor:
    """The error on each of some sets of images, with the test digits and noise of its own."""
    digits, labels = load_mnist(Path(root), "t10k")
    device = next(classifier.parameters()).device
    errors = []
    for number in range(sets):
        data = PAPER.make(digits, labels, images, seed=ELSEWHERE + number)
        wrong = 0
        for start in range(0, images, AT_A_TIME):
            batch = data.gather(range(start, min(start + AT_A_TIME, images))).to(device)
            called = classifier(batch.images).logits.argmax(-1)
            wrong += int((called != batch.labels).sum())
        errors.append(wrong / images)
    return torch.tensor(errors)


def main() -> None:
    """Print both tables, and the errors elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--root", help="MNIST's folder, where it is not where it was")
    parser.add_argument("--sets", type=int, default=16, help="other sets of noise")
    parser.add_argument("--most", type=int, default=6, help="patterns in a table")
    args = parser.parse_args()
    classifier = load_classifier(args.checkpoint).eval()
    classifier.to("cuda" if torch.cuda.is_available() else "cpu")
    settings = classifier.settings
    splits = build_splits(dataclasses.replace(settings, root=args.root or settings.root))
    for part, data in (("validation", splits.validation), ("test", splits.test)):
        print(f"\n{part}")
        if not isinstance(data, PlacedDataset):
            parser.error(f"{settings.dataset} has no patterns of noise; name a run on MNIST")
        describe(classifier, data, args.most)
    root = args.root or settings.root
    if args.sets > 0 and root is not None:
        errors = errors_elsewhere(classifier, root, args.sets)
        print(
            f"\n{args.sets} other sets of noise: {errors.mean():.2%}, {errors.max():.1%} at worst"
        )


if __name__ == "__main__":
    main()
