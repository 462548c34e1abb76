"""What only TIFF has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage

from foveate import open_image
from foveate.images import FileImage
from images.example_files import coloured, write_pyramid


def noise(height: int, width: int, channels: int = 3) -> np.ndarray:
    small = np.random.default_rng(0).integers(0, 256, (height // 8 + 1, width // 8 + 1, channels))
    return np.kron(small, np.ones((8, 8, 1)))[:height, :width].astype(np.uint8)


def backend_of(path: Path) -> str:
    image = open_image(path)
    assert isinstance(image, FileImage)
    return image.file.backend


@pytest.mark.parametrize("subsampling", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("tables", [True, False])
def test_jpeg_tiles_are_decoded_as_tifffile_does(
    tmp_path: Path, subsampling: tuple[int, int], tables: bool
) -> None:
    path = tmp_path / "a.tif"
    options: dict[str, Any] = {"outcolorspace": "ycbcr"}
    tifffile.imwrite(
        path,
        noise(200, 300),
        photometric="rgb",
        tile=(64, 96),
        compression="jpeg",
        subsampling=subsampling,
        compressionargs=options if tables else {},
    )
    image = open_image(path)
    expected = torch.from_numpy(tifffile.imread(path)).permute(2, 0, 1)
    assert torch.equal(image.read((0, 0), (200, 300)), expected)


def test_jpeg_tiles_that_hold_red_green_and_blue(tmp_path: Path) -> None:
    # As Aperio writes them: components that no marker names, in tiles without tables of their own.
    pixels, path = noise(128, 128), tmp_path / "a.tif"
    options = {"level": 100, "outcolorspace": "rgb"}
    tifffile.imwrite(
        path,
        pixels,
        photometric="rgb",
        tile=(64, 64),
        compression="jpeg",
        compressionargs=options,
        metadata=None,
    )
    content = path.read_bytes()
    adobe = content.index(b"Adobe")
    path.write_bytes(content.replace(b"Adobe", b"adobe"))  # now the marker is unknown
    assert adobe > 0
    with tifffile.TiffFile(path) as tiff:
        assert tiff.pages.first.photometric == 2
    got = open_image(path).read((0, 0), (128, 128))
    assert (got.int() - torch.from_numpy(pixels).permute(2, 0, 1).int()).abs().max() <= 3


@pytest.mark.parametrize("compression", ["zlib", "lzw", "zstd", "lzma", "packbits", "webp", "png"])
def test_compressions(tmp_path: Path, compression: str) -> None:
    pixels = noise(100, 120)
    options = {"lossless": True} if compression == "webp" else {}
    tifffile.imwrite(
        tmp_path / "a.tif",
        pixels,
        photometric="rgb",
        tile=(32, 48),
        compression=compression,
        compressionargs=options,
    )
    got = open_image(tmp_path / "a.tif").read((0, 0), (100, 120))
    assert torch.equal(got, torch.from_numpy(pixels).permute(2, 0, 1))


@pytest.mark.parametrize("planarconfig", ["contig", "separate"])
def test_long_rows_are_read_in_blocks(tmp_path: Path, planarconfig: str) -> None:
    pixels = coloured(300, 2500)
    stored = pixels if planarconfig == "contig" else pixels.transpose(2, 0, 1)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", planarconfig=planarconfig)
    image = open_image(tmp_path / "a.tif")
    assert isinstance(image, FileImage)
    assert image.file.layout.levels[0].tile == (128, 1024)
    expected = torch.from_numpy(pixels).permute(2, 0, 1)
    assert torch.equal(image.read((0, 0), (300, 2500)), expected)
    assert torch.equal(image.read((120, 1000), (20, 60)), expected[:, 120:140, 1000:1060])


def test_tiles_that_are_left_out_are_black(tmp_path: Path) -> None:
    def tiles() -> Any:
        for i in range(6):
            yield None if i % 2 else np.full((64, 64), 9, np.uint8)

    with tifffile.TiffWriter(tmp_path / "a.tif") as tiff:
        tiff.write(
            tiles(),
            shape=(128, 192),
            dtype=np.uint8,
            tile=(64, 64),
            photometric="minisblack",
            compression="zlib",
            metadata=None,
        )
    got = open_image(tmp_path / "a.tif").read((0, 0), (128, 192))[0]
    expected = torch.tensor([[9, 0, 9], [0, 9, 0]], dtype=torch.uint8)
    assert torch.equal(got, expected.repeat_interleave(64, 0).repeat_interleave(64, 1))


def test_a_thumbnail_of_another_shape_is_no_level(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as tiff:
        for height, width in ((256, 256), (128, 128), (64, 100)):
            tiff.write(coloured(height, width), photometric="rgb", tile=(64, 64), metadata=None)
    assert open_image(tmp_path / "a.tif").levels == ((256, 256), (128, 128))


def test_levels_of_sides_that_halves_do_not_divide(tmp_path: Path) -> None:
    levels = [coloured(301, 403), coloured(150, 201, 1), coloured(75, 100, 2)]
    write_pyramid(tmp_path / "a.tif", levels, subifds=False, tile=(64, 64))
    image = open_image(tmp_path / "a.tif")
    assert image.levels == ((301, 403), (150, 201), (75, 100))
    assert image.overview((75, 100)).permute(1, 2, 0).equal(torch.from_numpy(levels[2]))


def test_content_decides_and_not_the_name(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.png", coloured(32, 32), photometric="rgb", tile=(16, 16))
    assert backend_of(tmp_path / "a.png") == "tiff"


def test_what_tifffile_does_not_decode_goes_to_the_next(tmp_path: Path) -> None:
    image = PillowImage.fromarray(noise(40, 60)).convert("YCbCr")
    image.save(tmp_path / "a.tif", compression="tiff_lzw")
    assert backend_of(tmp_path / "a.tif") == "pillow"
    got = open_image(tmp_path / "a.tif").read((0, 0), (40, 60))
    expected = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)
    assert (got.int() - expected.int()).abs().max() <= 1


def test_the_size_of_pixels(tmp_path: Path) -> None:
    for name, resolution, unit, expected in (
        ("scan", (40000, 40000), "CENTIMETER", 0.25),
        ("inch", (25400, 25400), "INCH", 1.0),
        ("screen", (72, 72), "INCH", None),
        ("none", (40000, 40000), "NONE", None),
    ):
        tifffile.imwrite(
            tmp_path / name,
            coloured(16, 16),
            photometric="rgb",
            resolution=resolution,
            resolutionunit=unit,
            metadata=None,
        )
        assert open_image(tmp_path / name).microns_per_pixel == expected, name
