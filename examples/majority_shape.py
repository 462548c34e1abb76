"""Learn to find and count small shapes in 1000x1000 images from one label per image.

Each image holds five 28-pixel shapes, three of them alike, among twenty patches of noise; the label
is the shape that appears three times. Nobody tells the model where the shapes are. About a minute
on two cores:

    python examples/majority_shape.py
"""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import Tensor, nn

import foveate as fv
from foveate.models import (
    Attention,
    ContrastPrior,
    ConvAttention,
    ConvFeature,
    ScaledLinear,
    glorot_,
)

SIDE, GLYPH, NOISE = 1000, 28, 20
SHAPES = ["disc", "ring", "square", "frame", "plus", "cross", "triangle", "bars"]


def draw_shape(shape: str, radius: float) -> Tensor:
    """One shape as a (28, 28) image of bytes."""
    axis = torch.arange(GLYPH) - (GLYPH - 1) / 2
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    distance, box = torch.hypot(y, x), torch.maximum(y.abs(), x.abs())
    thick = 2.5
    inside = {
        "disc": distance < radius,
        "ring": (distance - radius + thick).abs() < thick,
        "square": box < radius * 0.8,
        "frame": (box - radius * 0.8 + thick).abs() < thick,
        "plus": (torch.minimum(y.abs(), x.abs()) < thick) & (box < radius),
        "cross": ((y.abs() - x.abs()).abs() < thick * 1.4) & (box < radius * 0.8),
        "triangle": (y < radius * 0.7) & (y > 2 * x.abs() - radius),
        "bars": (y.abs() % 8 > 4) & (box < radius),
    }[shape]
    return 255 * inside.to(torch.uint8)


def make_images(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images (count, 1, 1000, 1000) of bytes and their labels."""
    images = torch.zeros(count, 1, SIDE, SIDE, dtype=torch.uint8)
    labels = torch.randint(len(SHAPES), (count,), generator=generator)
    slots = SIDE // (GLYPH + 2)
    for image, label in zip(images, labels.tolist(), strict=True):
        others = (label + torch.randint(1, len(SHAPES), (2,), generator=generator)) % len(SHAPES)
        places = torch.randperm(slots * slots, generator=generator)[: 5 + NOISE].tolist()
        for number, place in enumerate(places):
            if number < 5:
                shape = SHAPES[label] if number < 3 else SHAPES[int(others[number - 3])]
                radius = 10 + 3 * torch.rand((), generator=generator).item()
                patch = draw_shape(shape, radius)
            else:
                patch = torch.randint(0, 256, (GLYPH, GLYPH), generator=generator).byte()
            y, x = (GLYPH + 2) * (place // slots), (GLYPH + 2) * (place % slots)
            image[0, y : y + GLYPH, x : x + GLYPH] = patch
    return images, labels


def make_model() -> fv.AttentionSampling:
    """Attention over a 100x100 overview, ten patches of 32x32."""
    feature = ConvFeature(1, channels=(16, 32, 64), strides=(2, 2, 1), pools=(1, 1, 1))
    model = fv.AttentionSampling(
        attention=Attention(ConvAttention(1), prior=ContrastPrior(), smoothing=1e-5),
        feature=feature,
        head=ScaledLinear(feature.out_features, len(SHAPES)),
        patch_size=(32, 32),
        n_patches=10,
        overview_size=(100, 100),
    )
    return glorot_(model)


@torch.no_grad()
def test_error(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images that are put into a wrong class."""
    model.eval()
    guesses = torch.cat([model(batch).logits.argmax(-1) for batch in images.split(50)])
    model.train()
    return (guesses != labels).float().mean().item()


def main() -> None:
    """Make the images, train, and print the test error after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=600, help="training images")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    images, labels = make_images(args.images, generator)
    unseen_images, unseen_labels = make_images(200, generator)
    print(f"{args.images} images of {SIDE}x{SIDE}; chance is {1 - 1 / len(SHAPES):.1%} error")

    model = make_model()
    batch_size = 16
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=1e-2, total_steps=args.epochs * math.ceil(args.images / batch_size)
    )
    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        for batch in torch.randperm(args.images).split(batch_size):
            out = model(images[batch])
            entropy = fv.entropy(out.log_attention).mean()
            loss = nn.functional.cross_entropy(out.logits, labels[batch]) - 1e-4 * entropy
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        error = test_error(model, unseen_images, unseen_labels)
        print(
            f"epoch {epoch:2d}  {time.perf_counter() - start:5.1f} s  loss {loss.item():.3f}  "
            f"entropy {entropy.item():.2f}  test error {error:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
