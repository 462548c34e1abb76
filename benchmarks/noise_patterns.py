"""Which noise of Megapixel MNIST a model looks at, and what that has to do with its errors.

    python benchmarks/noise_patterns.py RUN/last.ckpt [--root MNIST] [--sets 16]

Each part of the data set has 50 patterns of noise of its own. For the validation and the test part:
the error, which digits wrong answers name, and for the patterns that draw most of the attention how
much of it they draw in a mean image, and how much more often images that show them are mistaken.
Then the error on other sets of noise, with validation digits: 50 patterns are few, and the error of
one part has much to do with which they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from pathlib import Path

import torch
from torch import Tensor

from foveate.datasets import PlacedDataset, Splits
from foveate.datasets.megapixel_mnist import HELD_BACK, PAPER, load_mnist
from foveate.training import Classifier, build_splits, evaluate, load_classifier

PATTERNS = 50
IMAGES = 300
"""Of each other set of noise."""
ELSEWHERE = 100_000
"""Their seeds, which are of no run, count from here."""
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


def errors_elsewhere(checkpoint: Path, root: str, sets: int) -> list[float]:
    """The error on each of some sets of images, with validation digits and noise of its own."""
    digits, labels = (part[-HELD_BACK:] for part in load_mnist(Path(root), "train"))
    made = (PAPER.make(digits, labels, IMAGES, seed=ELSEWHERE + i) for i in range(sets))
    return [evaluate(checkpoint, splits=Splits(*[one] * 3)).summary["error"] for one in made]


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
        errors = errors_elsewhere(args.checkpoint, root, args.sets)
        mean, worst = statistics.mean(errors), max(errors)
        print(f"\n{args.sets} other sets of noise: {mean:.2%}, at worst {worst:.1%}")


if __name__ == "__main__":
    main()
