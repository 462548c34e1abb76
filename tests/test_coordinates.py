from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from foveate.coordinates import Grid
from foveate.errors import InputError

grids = st.builds(
    lambda cells, pool, extra, margin: Grid(
        cells=(cells[0], cells[1]),
        overview_size=(
            cells[0] * pool + extra[0] + 2 * margin,
            cells[1] * pool + extra[1] + 2 * margin,
        ),
        margin=(margin, margin),
    ),
    cells=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    pool=st.integers(1, 9),
    extra=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    margin=st.integers(0, 6),
)
sizes = st.tuples(st.integers(1, 100_000), st.integers(1, 100_000))
patches = st.tuples(st.integers(1, 300), st.integers(1, 300))


def every_cell(grid: Grid) -> torch.Tensor:
    return grid.cell_of(torch.arange(grid.cells[0] * grid.cells[1]))


@given(grids)
def test_index_round_trip(grid: Grid) -> None:
    index = torch.arange(grid.cells[0] * grid.cells[1])
    yx_cell = grid.cell_of(index)
    assert torch.equal(grid.index_of(yx_cell), index)
    assert (yx_cell < torch.tensor(grid.cells)).all()


@given(grids)
def test_overview_round_trip(grid: Grid) -> None:
    yx_cell = every_cell(grid)
    assert torch.equal(grid.cell_at_overview(grid.centre_overview(yx_cell)), yx_cell)


@given(grids, sizes)
def test_level0_round_trip(grid: Grid, image_size: tuple[int, int]) -> None:
    yx_cell = every_cell(grid)
    centre = grid.centre_level0(yx_cell, image_size)
    assert torch.equal(grid.cell_at_level0(centre, image_size), yx_cell)


@given(grids, sizes, patches)
def test_the_patch_is_centred_in_its_own_cell(
    grid: Grid, image_size: tuple[int, int], patch_size: tuple[int, int]
) -> None:
    yx_cell = every_cell(grid)
    edges = grid.edges_level0(yx_cell, image_size)
    # Rounding to whole pixels moves the centre by half a pixel at most.
    assume((edges[:, 1] - edges[:, 0]).min() >= 1.0)
    corner = grid.patch_corner(yx_cell, image_size, patch_size)
    centre = corner + torch.tensor(patch_size, dtype=torch.float64) / 2
    assert (centre >= edges[:, 0] - 1e-9).all()
    assert (centre <= edges[:, 1] + 1e-9).all()
    assert (centre - grid.centre_level0(yx_cell, image_size)).abs().max() <= 0.5 + 1e-9


@given(grids, sizes, patches, st.data())
def test_the_corner_is_the_rounded_ratio(
    grid: Grid, image_size: tuple[int, int], patch_size: tuple[int, int], data: st.DataObject
) -> None:
    yx_cell = [data.draw(st.integers(0, cells - 1)) for cells in grid.cells]
    expected = []
    for axis in (0, 1):
        stride = Fraction(grid.overview_size[axis] - 2 * grid.margin[axis], grid.cells[axis])
        centre = grid.margin[axis] + (yx_cell[axis] + Fraction(1, 2)) * stride
        centre *= Fraction(image_size[axis], grid.overview_size[axis])
        expected.append(round(centre - Fraction(patch_size[axis], 2)))
    got = grid.patch_corner(torch.tensor([yx_cell]), image_size, patch_size)
    assert got.tolist() == [expected]


@given(grids, st.lists(sizes, min_size=1, max_size=3), patches)
def test_sizes_on_a_device_give_the_same_corners(
    grid: Grid, image_sizes: list[tuple[int, int]], patch_size: tuple[int, int]
) -> None:
    yx_cell = every_cell(grid).expand(len(image_sizes), -1, 2)
    corners = [
        grid.patch_corners(yx_cell, known, patch_size)
        for known in (image_sizes, torch.tensor(image_sizes))
    ]
    assert torch.equal(*corners)


@given(grids, sizes)
def test_cells_tile_the_image_inside_its_margin(grid: Grid, image_size: tuple[int, int]) -> None:
    edges = grid.edges_level0(every_cell(grid), image_size).view(*grid.cells, 2, 2)
    torch.testing.assert_close(edges[1:, :, 0, 0], edges[:-1, :, 1, 0])
    torch.testing.assert_close(edges[:, 1:, 0, 1], edges[:, :-1, 1, 1])
    lost = torch.tensor(grid.margin) * torch.tensor(image_size) / torch.tensor(grid.overview_size)
    torch.testing.assert_close(edges[0, 0, 0], lost.double(), rtol=1e-6, atol=0)
    torch.testing.assert_close(
        edges[-1, -1, 1], torch.tensor(image_size) - lost.double(), rtol=1e-6, atol=0
    )


def test_a_terapixel_image_is_exact() -> None:
    grid = Grid((4000, 4000), (4008, 4008), (4, 4))
    corner = grid.patch_corner(torch.tensor([[3999, 0]]), (10**6, 10**6), (101, 101))
    centre = Fraction(4 + Fraction(7999, 2)) * Fraction(10**6, 4008)
    assert corner[0, 0].item() == round(centre - Fraction(101, 2))


def test_the_paper_s_speed_limit_setting() -> None:
    # Four unpadded 3x3 convolutions lose 4 pixels a side; pooled by 8: 280x376 -> 35x47.
    grid = Grid((35, 47), (288, 384), (4, 4))
    centre = grid.centre_overview(torch.tensor([[0, 0], [34, 46]]))
    assert centre.tolist() == [[8.0, 8.0], [280.0, 376.0]]


def test_an_overview_that_the_network_eats_up() -> None:
    with pytest.raises(InputError, match="margin of \\(4, 4\\); enlarge overview_size"):
        Grid((1, 1), (8, 20), (4, 4))
