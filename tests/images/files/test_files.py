"""One contract for every kind of file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch import Tensor

from foveate import read_patches
from foveate.errors import InputError
from foveate.images import FileImage, TensorImage
from foveate.images.files.handles import HANDLES
from foveate.images.files.tile_cache import TILES
from foveate.images.memory.resample import resample
from images.example_files import CASES, SIZE, Case

CORNERS = [
    (0, 0),
    (63, 95),  # over the edges of tiles
    (100, 200),
    (SIZE[0] - 20, SIZE[1] - 30),
    (SIZE[0] - 3, SIZE[1] - 5),  # over the edge of the image
    (-7, -11),
    (-20, 100),
    (150, -30),
    (SIZE[0], SIZE[1]),  # all outside
    (-1000, 5000),
]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    # A name without an ending: only the content tells what it is.
    return CASES[request.param](tmp_path_factory.mktemp("images") / "image")


def tensor_of(pixels: np.ndarray) -> Tensor:
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)


def check(got: Tensor, expected: Tensor, error: int) -> None:
    assert got.dtype == torch.uint8
    assert got.shape == expected.shape
    assert (got.int() - expected.int()).abs().max() <= error
    assert (got[:, (expected == 0).all(0)] == 0).all()


class TestContract:
    def test_it_knows_its_size(self, case: Case) -> None:
        assert case.image.file.backend == case.backend
        assert case.image.size == SIZE
        assert case.image.levels == tuple(level.shape[:2] for level in case.levels)
        assert case.image.channels == case.levels[0].shape[2]
        assert case.image.georeference is None

    def test_every_pixel_of_every_level(self, case: Case) -> None:
        for i, level in enumerate(case.levels):
            inside = tensor_of(level)
            framed = torch.nn.functional.pad(inside, (4, 6, 3, 5))
            size = (framed.shape[1], framed.shape[2])
            check(case.image.read((-3, -4), size, level=i), framed, case.error)

    @pytest.mark.parametrize("size", [(1, 1), (130, 200)])
    def test_any_rectangle(self, case: Case, size: tuple[int, int]) -> None:
        for level, pixels in enumerate(case.levels):
            expected = TensorImage(tensor_of(pixels))
            for corner in CORNERS:
                got = case.image.read(corner, size, level)
                check(got, expected.read(corner, size), case.error)

    def test_patches_are_the_rectangles_at_their_corners(self, case: Case) -> None:
        patches = case.image.read_patches(torch.tensor(CORNERS), (24, 40))
        assert patches.shape == (len(CORNERS), case.image.channels, 24, 40)
        for patch, corner in zip(patches, CORNERS, strict=True):
            assert torch.equal(patch, case.image.read(corner, (24, 40)))

    @pytest.mark.parametrize("size", [(20, 30), (74, 101), (150, 170), (300, 410)])
    def test_an_overview_is_the_nearest_level_resampled(
        self, case: Case, size: tuple[int, int]
    ) -> None:
        large = [level for level in case.levels if (np.array(level.shape[:2]) >= size).all()]
        level = min(large, key=np.size, default=case.levels[0])
        overview = case.image.overview(size)
        expected = resample(tensor_of(level)[None], size)[0]
        assert overview.shape == expected.shape
        # Tiles are added in another order: a half may be rounded the other way.
        check(overview, expected, case.error + 1)

    def test_a_pickled_image_is_its_path(self, case: Case) -> None:
        case.image.read((0, 0), (5, 5))
        pickled = pickle.dumps(case.image)
        assert len(pickled) < 2000
        copy = pickle.loads(pickled)
        assert (copy.size, copy.levels) == (case.image.size, case.image.levels)
        assert torch.equal(copy.read((50, 60), (90, 80)), case.image.read((50, 60), (90, 80)))

    def test_closing_lets_go_and_reading_opens_again(self, case: Case) -> None:
        with case.image as image:
            before = image.read((10, 20), (30, 40))
        key = case.image.file.key
        assert key not in HANDLES
        assert all(kept[0] != key for kept in TILES)
        assert torch.equal(case.image.read((10, 20), (30, 40)), before)
        assert key in HANDLES

    def test_other_channels(self, case: Case) -> None:
        from foveate import open_image

        image = case.image
        assert isinstance(image, FileImage)
        if image.file.backend == "openslide":
            pytest.skip("our own reader opens this file by itself")
        pixels = image.read((0, 0), SIZE)
        grey = open_image(image.file.location.name, channels=1)
        colour = open_image(image.file.location.name, channels=3)
        assert (grey.channels, colour.channels) == (1, 3)
        weights = torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
        expected = (pixels * weights).sum(0) if len(pixels) == 3 else pixels[0].float()
        assert (grey.read((0, 0), SIZE)[0] - expected).abs().max() <= 0.51
        assert torch.equal(colour.read((0, 0), SIZE), pixels.expand(3, *SIZE))
        assert colour.overview((30, 40)).shape == (3, 30, 40)
        assert grey.overview((30, 40)).shape == (1, 30, 40)

    def test_bad_requests_say_what_to_do(self, case: Case) -> None:
        last = len(case.levels) - 1
        with pytest.raises(InputError, match=f"cannot read level {last + 1} of .*0 to {last}"):
            case.image.read((0, 0), (2, 2), level=last + 1)
        with pytest.raises(InputError, match="cannot read level -1"):
            case.image.read((0, 0), (2, 2), level=-1)
        with pytest.raises(InputError, match=r"cannot read \(0, 2\) pixels"):
            case.image.read((0, 0), (0, 2))
        with pytest.raises(InputError, match=r"overview of \(5, 0\) pixels"):
            case.image.overview((5, 0))


def test_files_of_all_kinds_are_one_batch(tmp_path_factory: pytest.TempPathFactory) -> None:
    cases = [write(tmp_path_factory.mktemp("images") / "image") for write in CASES.values()]
    cases = [case for case in cases if case.image.channels == 3]
    yx = torch.tensor([CORNERS]).expand(len(cases), -1, -1)
    patches = read_patches([case.image for case in cases], yx, (24, 40))
    for case, got in zip(cases, patches, strict=True):
        assert torch.equal(got, case.image.read_patches(torch.tensor(CORNERS), (24, 40)))
