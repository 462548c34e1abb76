"""Where a model looked: the image, its attention, the patches that were drawn, and the truth.

Pictures are put together pixel by pixel, so that everything is where it belongs: the views of the
image are `view_size` large, and patches are shown in full resolution.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images import ImageBatch
from foveate.reports.heat import heat_layer, peak_of
from foveate.types import Float, Num, Prediction, Size, UInt8

VIEW = 600
"""The longer side of a view of an image, in pixels."""
SHOWN = 12
"""The most patches shown beside it."""

_OUTLINED = 100
"""The most patches outlined, so that something of the image is left to see."""
_SMALLEST = 7
"""The least side of an outline, in pixels of the view: in huge images a patch is but a point."""
_SMALL, _LARGE = 96, 512
"""Smaller patches are enlarged by a whole factor; larger ones are shrunk."""
_GAP, _LINE = 14, 22
_GROUND, _INK, _BLUE, _GREEN = "white", (32, 32, 32), (0, 191, 255), (50, 205, 50)

Number = int | float
Box = tuple[Number, Number, Number, Number]
"""(y0, x0, y1, x1)."""


def draw_attention(
    images: ImageBatch,
    out: Prediction,
    row: int,
    path: Path,
    title: str = "",
    truth: Float[Tensor, "m 4"] | None = None,
    border: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Draw one image of a batch: what it shows, where the attention lies, and the patches read.

    Args:
        images: the batch.
        out: what a model made of it.
        row: which image.
        path: where to write the picture; its ending says whether it is a PNG or a JPEG.
        title: what to write above it.
        truth: boxes (y0, x0, y1, x1) at level 0 around what decides the label.
        border: the share of height and width, on each side, that no cell covers.

    Raises:
        InputError: for a model that does not attend.
    """
    if out.log_attention is None or out.draw is None:
        raise InputError("cannot draw the attention of a model that has none, such as a CNN")
    if out.patches is None or out.yx_level0 is None:
        raise InputError("cannot draw a prediction without its patches")
    pillow = _pillow()
    size = images.sizes[row]
    view = view_size(size)
    plain = pillow.fromarray(shown(images.overviews(view)[row]))
    attention = out.log_attention[row].detach().float().exp().cpu()
    seen = plain.convert("RGBA")
    seen.alpha_composite(pillow.fromarray(heat_layer(attention, view, border)))
    seen = seen.convert("RGB")

    for y0, x0, y1, x1 in [] if truth is None else truth.tolist():
        _outline(plain, _in_view((y0, x0, y1, x1), size, view), _GREEN)
    order = out.draw.weight[row].argsort(descending=True, stable=True).tolist()
    p, q = out.patches.shape[-2:]
    corners = out.yx_level0[row].tolist()
    for rank in reversed(range(min(len(order), _OUTLINED))):  # the heaviest on top
        y, x = corners[order[rank]]
        name = str(rank + 1) if rank < SHOWN else ""
        _outline(seen, _in_view((y, x, y + p, x + q), size, view), _BLUE, name)

    weights = [out.draw.weight[row, i].item() for i in order[:SHOWN]]
    patches = [shown(out.patches[row, i]) for i in order[:SHOWN]]
    block = _mosaic(patches, weights, view[0])
    parts = [(title or "image", plain), (f"attention, {peak_of(attention)}", seen)]
    _save(_beside([*parts, ("patches and weights", block)]), path)


def view_size(size: Size) -> Size:
    """Height and width of the view of an image: as large as fits, its longer side `VIEW`.

    Example:
        >>> view_size((30_000, 40_000))
        (450, 600)
    """
    scale = VIEW / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def shown(pixels: Num[Tensor, "c h w"]) -> UInt8[np.ndarray, "h w 3"]:
    """Pixels as they are shown: the first three channels as colours, or else the first as grey."""
    colours = pixels.detach().cpu()
    if colours.dtype != torch.uint8:
        colours = (255 * colours.float().clamp(0, 1)).round().byte()
    colours = colours[:3] if len(colours) >= 3 else colours[:1].expand(3, -1, -1)
    return np.ascontiguousarray(colours.permute(1, 2, 0).numpy())


def _in_view(box: Box, size: Size, view: Size) -> Box:
    """A box of the image in pixels of its view."""
    scale_y, scale_x = view[0] / size[0], view[1] / size[1]
    y0, x0, y1, x1 = box[0] * scale_y, box[1] * scale_x, box[2] * scale_y, box[3] * scale_x
    grow_y, grow_x = max(0.0, _SMALLEST - (y1 - y0)) / 2, max(0.0, _SMALLEST - (x1 - x0)) / 2
    return y0 - grow_y, x0 - grow_x, y1 + grow_y, x1 + grow_x


def _outline(view: Any, box: Box, colour: tuple[int, int, int], name: str = "") -> None:
    """Draw around a box, so that what is in it stays free."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(view)
    y0, x0, y1, x1 = (round(side) for side in box)
    draw.rectangle((x0 - 3, y0 - 3, x1 + 2, y1 + 2), outline=(0, 0, 0), width=3)
    draw.rectangle((x0 - 2, y0 - 2, x1 + 1, y1 + 1), outline=colour, width=2)
    if name:
        place = (min(x1 + 5, view.width - 16), max(y0 - 4, 0))
        draw.text(place, name, colour, _font(13), stroke_width=2, stroke_fill=(0, 0, 0))


def _mosaic(patches: list[np.ndarray], weights: list[float], height: int) -> Any:
    """Patches in columns of about this height, their rank and weight below each."""
    from PIL import ImageDraw

    pillow = _pillow()
    tiles = [_fitted(pillow.fromarray(patch)) for patch in patches]
    wide = max(tiles[0].width, 80) + _GAP
    high = tiles[0].height + _LINE
    rows = max(height // high, -(-len(tiles) // 4), 1)
    columns = -(-len(tiles) // rows)
    rows = -(-len(tiles) // columns)
    block = pillow.new("RGB", (columns * wide - _GAP, rows * high), _GROUND)
    draw = ImageDraw.Draw(block)
    for place, (tile, weight) in enumerate(zip(tiles, weights, strict=True)):
        x, y = place % columns * wide, place // columns * high
        block.paste(tile, (x, y))
        draw.text((x, y + tile.height + 2), f"{place + 1}: {weight:.3f}", _INK, _font(13))
    return block


def _fitted(patch: Any) -> Any:
    longer = max(patch.size)
    factor = min(_LARGE / longer, 1.0) if longer > _SMALL else _SMALL // longer
    size = (max(1, round(patch.width * factor)), max(1, round(patch.height * factor)))
    how = _pillow().Resampling
    return patch if factor == 1 else patch.resize(size, how.NEAREST if factor > 1 else how.BOX)


def _beside(parts: list[tuple[str, Any]]) -> Any:
    """Pictures side by side on a white ground, with a line of text above each."""
    from PIL import ImageDraw

    titles = [_cut(title, max(part.width, 260)) for title, part in parts]
    widths = [
        max(part.width, round(_font(14).getlength(title)))
        for title, (_, part) in zip(titles, parts, strict=True)
    ]
    height = max(part.height for _, part in parts)
    whole = (sum(widths) + _GAP * (len(parts) + 1), height + _LINE + 2 * _GAP)
    canvas = _pillow().new("RGB", whole, _GROUND)
    draw = ImageDraw.Draw(canvas)
    x = _GAP
    for title, (_, part), width in zip(titles, parts, widths, strict=True):
        draw.text((x, _GAP - 2), title, _INK, _font(14))
        canvas.paste(part, (x, _GAP + _LINE))
        x += width + _GAP
    return canvas


def _cut(text: str, width: int) -> str:
    """A text that is at most so wide; its end is what tells files apart, so its start goes."""
    text = " ".join(text.split())
    if _font(14).getlength(text) <= width:
        return text
    while text and _font(14).getlength("…" + text) > width:
        text = text[1:]
    return "…" + text


def _save(picture: Any, path: Path) -> None:
    if path.suffix.lower() in (".jpg", ".jpeg"):
        picture.save(path, quality=90, subsampling=0)  # thin lines keep their colour
    else:
        picture.save(path)


@lru_cache(maxsize=4)
def _font(size: int) -> Any:
    """Matplotlib's, which knows most alphabets."""
    from PIL import ImageFont

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), size)


def _pillow() -> Any:
    from PIL import Image

    return Image
