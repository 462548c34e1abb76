"""Overview, patches and networks for images that nobody has tuned them for.

The rule, from the median height H and width W of the images and their longer side L:

    overview   keeps the shape of H x W; its longer side is L / 4, but 100 to 512 pixels, and never
               more than L. A quarter still shows things of 20 pixels, which is what attention needs
               to find them; 512 is what an attention network does in reasonable time on a CPU.
    patches    10 squares of side L / 20, but 32 to 128 pixels, and at most half the shorter side;
               a multiple of 4. Ten of them cover about 3 % of a photograph. Below 32 there is
               little to see; above 128 a step on a CPU takes seconds.
    attention  `pooled`, whose cells are 8 overview pixels wide, where a cell is at most half a
               patch, so that no place is missed, and there are many cells, as the overview is 100
               pixels wide or more; else `deep`, whose cells are single pixels.
    features   `deep`, which asks of a patch whether something is anywhere in it.
    grid       of deep MIL: patches side by side, 32 rows and columns at most.
    passes     as many as make an epoch 500 images long, where there are fewer; 20 at most.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foveate.datasets import Manifest
from foveate.errors import InputError
from foveate.training.presets import settings_for
from foveate.training.settings import Settings
from foveate.types import Size

_LEAST = 100
"""Pixels of an overview's longer side, unless the image itself has fewer."""

_CELL = 8
"""Overview pixels that a cell of pooled attention is wide."""


@dataclass(frozen=True)
class Sizing:
    """What is chosen from the sizes of images; the names are those of `Settings`."""

    overview_size: Size
    patch_size: Size
    n_patches: int
    attention: str
    feature: str
    grid: Size
    passes: int

    def as_dict(self) -> dict[str, Any]:
        """The choices by name."""
        return dict(vars(self))


def choose_sizes(
    sizes: Sequence[Size],
    training_images: int | None = None,
    overview_size: Size | None = None,
    patch_size: Size | None = None,
) -> Sizing:
    """Choose overview, patches and networks by the rule of this module.

    Args:
        sizes: height and width of each image.
        training_images: how many there are to train on; all if it is left out.
        overview_size: height and width of the overview, if that is chosen already.
        patch_size: height and width of the patches, if that is.

    Raises:
        InputError: for no images.

    Example:
        >>> chosen = choose_sizes([(800, 1360)] * 500)
        >>> chosen.overview_size, chosen.patch_size, chosen.attention
        ((200, 340), (68, 68), 'pooled')
    """
    if not sizes:
        raise InputError("cannot choose sizes for no images; pass the size of one at least")
    height, width = (float(statistics.median(sides)) for sides in zip(*sizes, strict=True))
    longer, shorter = max(height, width), min(height, width)

    if overview_size is None:
        scale = min(1.0, _clamp(longer / 4, _LEAST, 512) / longer)
        overview_size = (_side(height * scale), _side(width * scale))
    if patch_size is None:
        side = min(_clamp(longer / 20, 32, 128), int(shorter / 2))
        side = max(4, side // 4 * 4)  # feature networks halve patches twice
        patch_size = (side, side)
    in_overview = min(
        patch_size[0] * overview_size[0] / height, patch_size[1] * overview_size[1] / width
    )
    pooled = in_overview >= 2 * _CELL and min(overview_size) >= _LEAST
    images = len(sizes) if training_images is None else training_images
    return Sizing(
        overview_size=overview_size,
        patch_size=patch_size,
        n_patches=10,
        attention="pooled" if pooled else "deep",
        feature="deep",
        grid=(
            _clamp(-(-height // patch_size[0]), 1, 32),
            _clamp(-(-width // patch_size[1]), 1, 32),
        ),
        passes=_clamp(500 / max(images, 1), 1, 20),
    )


def settings_for_manifest(
    manifest: Manifest, recipe: str = "default", **overrides: Any
) -> Settings:
    """The settings for a user's images, with some of them overridden; None overrides nothing.

    Args:
        manifest: the images, found and opened.
        recipe: default or paper.
        overrides: whatever `Settings` has.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    chosen = choose_sizes(
        manifest.sizes,
        manifest.parts.count("train"),
        given.get("overview_size"),
        given.get("patch_size"),
    ).as_dict()
    if recipe == "paper" and chosen["attention"] == "deep":
        chosen["attention"] = "conv"
    return settings_for(
        "manifest",
        recipe,
        root=str(manifest.source.absolute()),
        channels=manifest.channels,
        fingerprint=manifest.fingerprint,
        **chosen | given,
    )


def _clamp(value: float, least: int, most: int) -> int:
    return round(min(max(value, least), most))


def _side(length: float) -> int:
    """A side of an overview; very long images do not get thinner than 16 pixels."""
    return max(16, round(length))
