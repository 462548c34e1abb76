"""The only arithmetic between cells, overview and full resolution.

Three frames, all (y, x) with the origin at the top left corner of the image:

    yx_cell      which cell of the attention map, (row, col)
    yx_overview  pixels of the overview; pixel i covers [i, i + 1)
    yx_level0    pixels of the full-resolution image, likewise

An attention network without padding loses `margin` overview pixels on each side. Cell i of h then
covers [margin + i s, margin + (i + 1) s) of the overview, s = (overview_h - 2 margin) / h, and this
times H / overview_h of the image. Everything is a ratio of integers and is rounded once, so that
results are the same on every device and exact at any image size.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.types import Extents, Float64, Int64, Size


@dataclass(frozen=True)
class Grid:
    """Where the cells of an attention map lie.

    Attributes:
        cells: rows and columns of the attention map.
        overview_size: height and width of the overview.
        margin: overview pixels that the attention network loses on each side, (y, x).

    Example:
        >>> grid = Grid(cells=(35, 47), overview_size=(288, 384), margin=(4, 4))
        >>> grid.patch_corner(torch.tensor([[0, 0], [34, 46]]), (960, 1280), (100, 100))
        tensor([[ -23,  -23],
                [ 883, 1203]])
    """

    cells: Size
    overview_size: Size
    margin: Size = (0, 0)

    def __post_init__(self) -> None:
        for cells, overview, margin in zip(
            self.cells, self.overview_size, self.margin, strict=True
        ):
            if cells < 1 or margin < 0 or overview <= 2 * margin:
                raise InputError(
                    f"cells {self.cells} do not fit an overview of {self.overview_size} with a "
                    f"margin of {self.margin}; enlarge overview_size"
                )

    def cell_of(self, index: Int64[Tensor, "*n"]) -> Int64[Tensor, "*n 2"]:
        """Indices into the flattened cells, as yx_cell."""
        columns = self.cells[1]
        return torch.stack([index // columns, index % columns], dim=-1)

    def index_of(self, yx_cell: Int64[Tensor, "*n 2"]) -> Int64[Tensor, "*n"]:
        """The way back from `cell_of`."""
        return yx_cell[..., 0] * self.cells[1] + yx_cell[..., 1]

    def edges_overview(self, yx_cell: Int64[Tensor, "*n 2"]) -> Float64[Tensor, "*n 2 2"]:
        """What each cell covers of the overview: its first corner and the one past its last."""
        return self._edges(yx_cell, self.overview_size)

    def edges_level0(
        self, yx_cell: Int64[Tensor, "*n 2"], image_size: Size
    ) -> Float64[Tensor, "*n 2 2"]:
        """What each cell covers of an image: its first corner and the one past its last."""
        return self._edges(yx_cell, image_size)

    def centre_overview(self, yx_cell: Int64[Tensor, "*n 2"]) -> Float64[Tensor, "*n 2"]:
        """The centre of each cell, in overview pixels."""
        return self._position(yx_cell, 1, self.overview_size)

    def centre_level0(
        self, yx_cell: Int64[Tensor, "*n 2"], image_size: Size
    ) -> Float64[Tensor, "*n 2"]:
        """The centre of each cell, in pixels of an image."""
        return self._position(yx_cell, 1, image_size)

    def patch_corner(
        self, yx_cell: Int64[Tensor, "*n 2"], image_size: Size, patch_size: Size
    ) -> Int64[Tensor, "*n 2"]:
        """The first pixel (yx_level0) of the patch centred on each cell.

        round(centre - patch / 2), halves to even; it may lie outside the image.
        """
        # A compiler works the table out each time, but fuses that into little.
        table = _corners if torch.compiler.is_compiling() else _kept_corners
        corners = [
            table(self, axis, image_size[axis], patch_size, yx_cell.device)[yx_cell[..., axis]]
            for axis in (0, 1)
        ]
        return torch.stack(corners, dim=-1)

    def patch_corners(
        self, yx_cell: Int64[Tensor, "b n 2"], image_sizes: Extents, patch_size: Size
    ) -> Int64[Tensor, "b n 2"]:
        """`patch_corner` for a batch of images, each of its own size."""
        if isinstance(image_sizes, Tensor):
            places = [
                self._patch_place(yx_cell[..., axis], image_sizes[:, axis, None], patch_size, axis)
                for axis in (0, 1)
            ]
            return torch.stack(places, dim=-1)
        if len(set(image_sizes)) == 1:
            return self.patch_corner(yx_cell, image_sizes[0], patch_size)
        corners = [
            self.patch_corner(cells, size, patch_size)
            for cells, size in zip(yx_cell, image_sizes, strict=True)
        ]
        return torch.stack(corners)

    def location(self, yx_cell: Int64[Tensor, "*n 2"]) -> Float64[Tensor, "*n 2"]:
        """The centre of each cell from 0 to 1 over the image, (y, x)."""
        return self._position(yx_cell, 1, (1, 1))

    def cell_at_overview(self, yx_overview: Float64[Tensor, "*n 2"]) -> Int64[Tensor, "*n 2"]:
        """The cell that covers each place of the overview; in the margin, the nearest."""
        return self._cell_at(yx_overview, self.overview_size)

    def cell_at_level0(
        self, yx_level0: Float64[Tensor, "*n 2"], image_size: Size
    ) -> Int64[Tensor, "*n 2"]:
        """The cell that covers each place of an image; in the margin, the nearest."""
        return self._cell_at(yx_level0, image_size)

    def _patch_place(
        self, cell: Int64[Tensor, "*n"], length: int | Tensor, patch_size: Size, axis: int
    ) -> Int64[Tensor, "*n"]:
        """Where the patches on some rows or columns of cells begin."""
        numerator, denominator = self._twice_position(cell, 1, length, axis)
        return round_ratio(numerator - patch_size[axis] * denominator, 2 * denominator)

    def _twice_position(
        self, cell: Int64[Tensor, "*n"], half_cells: int, length: int | Tensor, axis: int
    ) -> tuple[Int64[Tensor, "*n"], int]:
        """Twice the place `half_cells` halves into a cell of a view of this length, as a ratio."""
        cells, overview, margin = self.cells[axis], self.overview_size[axis], self.margin[axis]
        halves = 2 * cell + half_cells
        numerator = (2 * margin * cells + halves * (overview - 2 * margin)) * length
        return numerator, cells * overview

    def _position(
        self, yx_cell: Int64[Tensor, "*n 2"], half_cells: int, size: Size
    ) -> Float64[Tensor, "*n 2"]:
        places = []
        for axis in (0, 1):
            numerator, denominator = self._twice_position(
                yx_cell[..., axis], half_cells, size[axis], axis
            )
            places.append(numerator.double() / (2 * denominator))
        return torch.stack(places, dim=-1)

    def _edges(self, yx_cell: Int64[Tensor, "*n 2"], size: Size) -> Float64[Tensor, "*n 2 2"]:
        return torch.stack([self._position(yx_cell, half, size) for half in (0, 2)], dim=-2)

    def _cell_at(self, yx: Float64[Tensor, "*n 2"], size: Size) -> Int64[Tensor, "*n 2"]:
        places = []
        for axis in (0, 1):
            cells, overview, margin = self.cells[axis], self.overview_size[axis], self.margin[axis]
            on_overview = yx[..., axis] * overview / size[axis]
            place = (on_overview - margin) * cells / (overview - 2 * margin)
            places.append(place.floor().long().clamp(0, cells - 1))
        return torch.stack(places, dim=-1)


def _corners(
    grid: Grid, axis: int, length: int, patch_size: Size, device: torch.device
) -> Int64[Tensor, " cells"]:
    """Where the patch of each row or column of cells begins."""
    cell = torch.arange(grid.cells[axis], device=device)
    return grid._patch_place(cell, length, patch_size, axis)


_kept_corners = functools.lru_cache(maxsize=1024)(_corners)
"""The same, made once for each size."""


def round_ratio(numerator: Int64[Tensor, "*n"], denominator: int) -> Int64[Tensor, "*n"]:
    """Numerator / denominator to the nearest integer, halves to even, with no float between."""
    below = torch.div(numerator, denominator, rounding_mode="floor")
    twice_rest = 2 * (numerator - below * denominator)
    up = (twice_rest > denominator) | ((twice_rest == denominator) & (below % 2 == 1))
    return below + up.long()
