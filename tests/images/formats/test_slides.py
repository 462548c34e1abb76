"""Real slides, against the readers that others use, where the files are to be had."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch

from foveate import open_image
from foveate.images import FileImage
from foveate.images.memory.resample import resample

DATA = Path(os.environ.get("FOVEATE_DATA", Path(__file__).parents[4] / "shared" / "data"))
SLIDES = DATA / "slides"

pytestmark = pytest.mark.skipif(not SLIDES.is_dir(), reason="the slides are not here")


def opened(name: str) -> FileImage:
    image = open_image(next(SLIDES.glob(name)))
    assert isinstance(image, FileImage)
    return image


def by_openslide(name: str, level: int) -> torch.Tensor:
    openslide = pytest.importorskip("openslide")
    with openslide.OpenSlide(next(SLIDES.glob(name))) as slide:
        region = slide.read_region((0, 0), level, slide.level_dimensions[level])
        return torch.from_numpy(np.array(region)[..., :3]).permute(2, 0, 1)


def by_tifffile(name: str, page: int) -> np.ndarray:
    with tifffile.TiffFile(next(SLIDES.glob(name))) as tiff:
        return np.asarray(tiff.pages[page].asarray())


def test_an_aperio_slide() -> None:
    image = opened("cmu-1-small-region.svs")
    assert image.file.backend == "tiff"
    assert image.levels == ((2967, 2220),)
    assert image.microns_per_pixel == 0.499
    pixels = image.read((0, 0), image.size)
    assert torch.equal(pixels, by_openslide("cmu-1-small-region.svs", 0))
    assert torch.equal(image.overview((200, 150)), resample(pixels[None], (200, 150))[0])


def test_a_fluorescence_slide() -> None:
    image = opened("*.ndpi")
    assert image.file.backend == "openslide"
    assert image.size == (4864, 3968)
    assert image.microns_per_pixel == pytest.approx(0.228, abs=1e-3)
    for level in (1, 2):
        got = image.read((0, 0), image.levels[level], level).permute(1, 2, 0)
        assert np.array_equal(got.numpy(), by_tifffile("*.ndpi", level))
    overview = image.overview((304, 248)).float()
    assert overview[2].mean() > 20 * overview[0].mean()  # DAPI is blue


def test_a_fluorescence_slide_without_openslide(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = opened("*.ndpi").read((700, 800), (300, 400))
    monkeypatch.setitem(sys.modules, "openslide", None)
    image = opened("*.ndpi")
    assert image.file.backend == "tiff"
    assert image.levels == ((4864, 3968), (2432, 1984), (1216, 992), (608, 496))
    assert torch.equal(image.read((700, 800), (300, 400)), expected)


def test_a_geotiff_with_a_palette() -> None:
    image = opened("cog_cmap.tif")
    assert image.file.backend == "tiff"
    assert image.levels == ((8704, 7168), (4352, 3584), (2176, 1792), (1088, 896), (544, 448))
    assert image.georeference is not None
    assert image.georeference.epsg == 3857
    for level in (2, 4):
        got = image.read((0, 0), image.levels[level], level)
        assert torch.equal(got, by_openslide("cog_cmap.tif", level))
    assert image.overview((100, 100)).float().std() > 10
