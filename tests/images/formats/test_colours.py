"""The one rule by which files become uint8 colours, in every format that can state them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage
from torch import Tensor

from foveate import open_image
from foveate.errors import DataError, InputError
from images.example_files import bare_tiff

RAMP = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
"""Sixteen bits that are 0 to 255 in eight."""
BYTES = np.arange(256, dtype=np.uint8).reshape(16, 16)


def pixels_of(path: Path, channels: int | None = None) -> Tensor:
    image = open_image(path, channels)
    return image.read((0, 0), image.size)


def write(path: Path, pixels: np.ndarray, **options: Any) -> Path:
    tifffile.imwrite(path, pixels, **{"photometric": "minisblack", "metadata": None, **options})
    return path


@pytest.mark.parametrize("options", [{}, {"tile": (16, 16)}, {"compression": "zlib"}])
def test_sixteen_bits_are_scaled_by_what_they_can_hold(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    got = pixels_of(write(tmp_path / "a.tif", RAMP, **options))
    assert torch.equal(got[0], torch.from_numpy(BYTES))
    big_endian = pixels_of(write(tmp_path / "b.tif", RAMP, byteorder=">", **options))
    assert torch.equal(big_endian, got)


@pytest.mark.parametrize(("tag", "kind"), [(50717, 4), (341, 3), (281, 3)])
def test_a_stated_maximum_is_white(tmp_path: Path, tag: int, kind: int) -> None:
    samples = np.array([[0, 1000, 2000, 4000, 5000, 65535]], np.uint16)
    path = write(tmp_path / "a.tif", samples, extratags=[(tag, kind, 1, 4000, True)])
    assert pixels_of(path).flatten().tolist() == [0, 64, 128, 255, 255, 255]


def test_twelve_bits_are_white_at_4095(tmp_path: Path) -> None:
    packed = bare_tiff(tmp_path / "packed.tif", 2, 4, 12, bytes.fromhex("000800fffaaa") * 2)
    assert pixels_of(packed).tolist() == [[[0, 128, 255, 170]] * 2]
    samples = np.array([[0, 2048, 4095, 2730]], np.uint16)
    ome = tmp_path / "ome.tif"
    tifffile.imwrite(ome, samples, ome=True, metadata={"axes": "YX", "SignificantBits": 12})
    assert pixels_of(ome).tolist() == [[[0, 128, 255, 170]]]


def test_other_whole_numbers(tmp_path: Path) -> None:
    signed = write(tmp_path / "signed.tif", np.array([[-5, 0, 16384, 32767]], np.int16))
    assert pixels_of(signed).flatten().tolist() == [0, 0, 128, 255]
    wide = write(tmp_path / "wide.tif", np.array([[0, 2**31, 2**32 - 1]], np.uint32))
    assert pixels_of(wide).flatten().tolist() == [0, 128, 255]
    bits = write(tmp_path / "bits.tif", np.eye(16, dtype=bool))
    assert torch.equal(pixels_of(bits)[0], 255 * torch.eye(16, dtype=torch.uint8))


@pytest.mark.parametrize("form", ["PNG", "TIFF", "JPEG2000", "PPM"])
def test_sixteen_bits_of_other_formats(tmp_path: Path, form: str) -> None:
    PillowImage.fromarray(RAMP).save(tmp_path / "a", form)
    assert torch.equal(pixels_of(tmp_path / "a")[0], torch.from_numpy(BYTES))


def test_floats_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", np.zeros((16, 16), np.float32))
    with pytest.raises(DataError, match=r"a\.tif: its samples are float32, .*8 or 16 bits"):
        open_image(path)


def test_white_can_be_zero(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", BYTES, photometric="miniswhite")
    assert torch.equal(pixels_of(path)[0], 255 - torch.from_numpy(BYTES))


@pytest.mark.parametrize("tiled", [False, True])
def test_a_palette_is_colour(tmp_path: Path, tiled: bool) -> None:
    palette = np.random.default_rng(0).integers(0, 256, (256, 3), dtype=np.uint16)
    options: dict[str, Any] = {"tile": (16, 16), "compression": "zlib"} if tiled else {}
    path = write(
        tmp_path / "a.tif", BYTES, photometric="palette", colormap=(257 * palette).T, **options
    )
    assert torch.equal(
        pixels_of(path), torch.from_numpy(palette[BYTES].astype(np.uint8)).permute(2, 0, 1)
    )
    image = PillowImage.fromarray(BYTES).convert("P")
    image.putpalette(palette.astype(np.uint8).tobytes())
    image.save(tmp_path / "a.png")
    assert torch.equal(pixels_of(tmp_path / "a.png"), pixels_of(path))


def test_the_transparent_shows_white(tmp_path: Path) -> None:
    pixels = np.zeros((1, 3, 4), np.uint8)
    pixels[0] = [[10, 20, 30, 255], [10, 20, 30, 0], [100, 0, 200, 51]]
    expected = [[10, 20, 30], [255, 255, 255], [224, 204, 244]]
    PillowImage.fromarray(pixels).save(tmp_path / "a.png")
    write(tmp_path / "a.tif", pixels, photometric="rgb", extrasamples=["unassalpha"])
    premultiplied = pixels.copy()
    premultiplied[0, 1:, :3] = [[0, 0, 0], [20, 0, 40]]
    write(tmp_path / "b.tif", premultiplied, photometric="rgb", extrasamples=["assocalpha"])
    for name in ("a.png", "a.tif", "b.tif"):
        assert pixels_of(tmp_path / name)[:, 0].T.tolist() == expected, name
    write(tmp_path / "c.tif", pixels, photometric="rgb", extrasamples=["unspecified"])
    assert pixels_of(tmp_path / "c.tif")[:, 0].T.tolist() == pixels[0, :, :3].tolist()


def test_transparent_grey(tmp_path: Path) -> None:
    pixels = np.array([[[100, 255], [100, 0], [100, 51]]], np.uint8)
    PillowImage.fromarray(pixels, "LA").save(tmp_path / "a.png")
    write(tmp_path / "a.tif", pixels, extrasamples=["unassalpha"], planarconfig="contig")
    for name in ("a.png", "a.tif"):
        assert pixels_of(tmp_path / name).tolist() == [[[100, 255, 224]]], name


def test_cmyk_is_light_through_ink(tmp_path: Path) -> None:
    ink = np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 128, 0, 128], [9, 9, 9, 255]]], np.uint8)
    expected = [[255, 255, 255], [0, 255, 255], [127, 63, 127], [0, 0, 0]]
    write(tmp_path / "a.tif", ink, photometric="separated")
    assert pixels_of(tmp_path / "a.tif")[:, 0].T.tolist() == expected
    flat = np.broadcast_to(ink[:, 2:3], (16, 16, 4))
    PillowImage.fromarray(np.ascontiguousarray(flat), "CMYK").save(tmp_path / "a.jpg", quality=100)
    got = pixels_of(tmp_path / "a.jpg").float().mean((1, 2))
    torch.testing.assert_close(got, torch.tensor([127.0, 63.0, 127.0]), atol=2, rtol=0)


def test_three_bands_that_are_not_said_to_be_colour(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    path = write(tmp_path / "a.tif", pixels, planarconfig="contig")
    assert torch.equal(pixels_of(path), torch.from_numpy(pixels).permute(2, 0, 1))


def test_other_bands_and_stacks_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "bands.tif", np.zeros((16, 16, 7), np.uint8), planarconfig="contig")
    with pytest.raises(DataError, match=r"bands\.tif: its pixels have 7 samples of .* MINISBLACK"):
        open_image(tmp_path / "bands.tif")
    stack = np.zeros((5, 2, 16, 16), np.uint8)
    tifffile.imwrite(tmp_path / "stack.tif", stack, ome=True, metadata={"axes": "ZCYX"})
    with pytest.raises(DataError, match=r"a stack of planes \(Z = 5, C = 2\)"):
        open_image(tmp_path / "stack.tif")


def test_of_several_pages_the_first_is_taken(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as tiff:
        for value in (7, 8, 9):
            tiff.write(np.full((16, 16), value, np.uint8), metadata=None)
    image = open_image(tmp_path / "a.tif")
    assert image.levels == ((16, 16),)
    assert (image.read((0, 0), (16, 16)) == 7).all()


def test_orientation_is_left_alone(tmp_path: Path) -> None:
    tags = PillowImage.Exif()
    tags[274] = 6  # turned by a quarter
    PillowImage.new("RGB", (30, 20)).save(tmp_path / "a.jpg", exif=tags)
    write(tmp_path / "a.tif", np.zeros((20, 30), np.uint8), extratags=[(274, 3, 1, 6, True)])
    for name in ("a.jpg", "a.tif"):
        assert open_image(tmp_path / name).size == (20, 30)


def test_channels_that_can_not_be(tmp_path: Path) -> None:
    PillowImage.new("RGB", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match="3 channels or 1, but 4 were asked for"):
        open_image(tmp_path / "a.png", channels=4)
    with pytest.raises(InputError, match="has 1 channels and 3 were asked for"):
        open_image(torch.zeros(1, 8, 8), channels=3)
    assert open_image(torch.zeros(3, 8, 8), channels=3).channels == 3
