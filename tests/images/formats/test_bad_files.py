"""Files that can not be read: each gives one line that names it and says what to do."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage

from foveate import FoveateError, open_image
from foveate.errors import DataError, MissingExtraError
from foveate.images import FileImage
from foveate.images.formats import damage
from images.example_files import bare_tiff, coloured, smooth


def write_png(path: Path) -> None:
    PillowImage.fromarray(coloured(200, 300)).save(path, "PNG")


def write_jpeg(path: Path) -> None:
    PillowImage.fromarray(smooth(200, 300)).save(path, "JPEG")


def write_tiles(path: Path) -> None:
    tifffile.imwrite(path, coloured(200, 300), photometric="rgb", tile=(64, 64), compression="zlib")


def write_jpeg_tiles(path: Path) -> None:
    tifffile.imwrite(path, smooth(200, 300), photometric="rgb", tile=(64, 64), compression="jpeg")


def write_rows(path: Path) -> None:
    tifffile.imwrite(path, coloured(200, 300), photometric="rgb")


def cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def read_all(path: Path) -> None:
    image = open_image(path)
    image.read((0, 0), image.size)


def one_line(error: pytest.ExceptionInfo[BaseException], path: Path) -> bool:
    message = str(error.value)
    return "\n" not in message and str(path) in message and len(message) < 500 + len(str(path))


@pytest.mark.parametrize(
    "write", [write_png, write_jpeg, write_tiles, write_jpeg_tiles, write_rows]
)
@pytest.mark.parametrize("share", [0.002, 0.3, 0.9])
def test_cut_off_files(
    tmp_path: Path, write: Callable[[Path], None], share: float, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "image"
    write(path)
    cut(path, share)
    with pytest.raises(DataError, match=r"cannot (read|open)") as error:
        read_all(path)
    assert one_line(error, path)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_cut_off_pyramid_opens_and_names_itself_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    # The directory stands before the tiles.
    tifffile.imwrite(path, coloured(400, 300), photometric="rgb", tile=(64, 64), compression="zlib")
    cut(path, 0.9)
    image = open_image(path)
    assert image.read((0, 0), (64, 300)).all()
    with pytest.raises(DataError, match=r"a\.tif: bytes \d+ to \d+ were asked for .* cut off"):
        image.read((380, 0), (20, 300))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"the file is empty, 0 bytes; replace it or leave it out"),
        (b"This is a text, and no image at all.\n" * 50, "no known format"),
        (b"II*\0", "damaged or no image"),
        (b"II*\0" + bytes(500), "damaged or no image"),
        (b"II*\0\x08\0\0\0\xff\xff" + bytes(range(200)), "damaged or no image"),
        (b"MM\0*\xff\xff\xff\xff", "damaged or no image"),
        (b"II+\0\x08\0\0\0" + b"\xff" * 20, "damaged or no image"),
        (b"\xff\xd8\xff\xe0" + bytes(100), "damaged or no image"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "damaged or no image"),
        (bytes(128) + b"DICM" + bytes(200), "damaged or no image"),
        (os.urandom(64) * 20, "damaged or no image"),
    ],
)
def test_what_is_no_image(tmp_path: Path, content: bytes, message: str) -> None:
    for name in ("a.tif", "b.jpg", "c"):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=message) as error:
            open_image(path)
        assert one_line(error, path)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot open .*a\.tif: there is no such file; check"):
        open_image(tmp_path / "a.tif")
    with pytest.raises(DataError, match="it is a folder; pass one of the files in it"):
        open_image(tmp_path)
    with pytest.raises(DataError, match="null byte; check the path"):
        open_image("a\0b")
    path = tmp_path / "b.png"
    write_png(path)
    image = open_image(path)
    image.close()
    path.unlink()
    with pytest.raises(DataError, match=r"b\.png: there is no such file any more; restore it"):
        image.read((0, 0), (1, 1))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything may be read"
)
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    write_png(path)
    path.chmod(0)
    with pytest.raises(DataError, match="check that it may be read"):
        open_image(path)


def test_images_without_pixels(tmp_path: Path) -> None:
    for height, width in ((0, 5), (5, 0), (0, 0)):
        path = bare_tiff(tmp_path / "a.tif", height, width, 8, b"")
        with pytest.raises(DataError, match=r"a\.tif"):
            open_image(path)


def test_a_tiff_that_lies_about_its_size(tmp_path: Path) -> None:
    path = bare_tiff(tmp_path / "a.tif", 2**31, 2**31, 8, bytes(100))
    with pytest.raises(DataError, match="cut off"):
        open_image(path).read((2**30, 2**30), (10, 10))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "BMP"])
def test_too_many_pixels_to_decode_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(damage, "PIXEL_LIMIT", 50_000)
    PillowImage.fromarray(coloured(200, 300)).save(tmp_path / "a", form)
    expected = r"a: it has 200 x 300 pixels .* 50000 are the limit; .* foveate convert .*a tiled\.t"
    with pytest.raises(DataError, match=expected):
        open_image(tmp_path / "a")


@pytest.mark.parametrize("options", [{"rowsperstrip": 200}, {"tile": (208, 304)}])
def test_too_large_tiles_and_strips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(damage, "PIXEL_LIMIT", 50_000)
    tifffile.imwrite(
        tmp_path / "a.tif", coloured(200, 300), photometric="rgb", compression="zlib", **options
    )
    with pytest.raises(DataError, match=r"a (strip|tile) has \d+ x \d+ pixels .*foveate convert"):
        open_image(tmp_path / "a.tif")


def test_a_large_png_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PillowImage, "MAX_IMAGE_PIXELS", 1000)  # Pillow refuses twice as many
    write_png(tmp_path / "a.png")
    assert open_image(tmp_path / "a.png").read((0, 0), (200, 300)).all()
    assert PillowImage.MAX_IMAGE_PIXELS == 1000


def test_odd_but_whole_jpegs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    write_jpeg(path)
    expected = open_image(path).read((0, 0), (200, 300))
    content = path.read_bytes()
    start = content.index(b"\xff\xda")
    for odd in (content[:start] + bytes(3) + content[start:], content + b"more"):
        path.write_bytes(odd)
        assert torch.equal(open_image(path).read((0, 0), (200, 300)), expected)


class TestMissingPackages:
    @pytest.fixture
    def without(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        return lambda package: monkeypatch.setitem(__import__("sys").modules, package, None)

    def backend(self, path: Path) -> str:
        image = open_image(path)
        assert isinstance(image, FileImage)
        image.close()
        image.overview((20, 30))
        assert image.read((0, 0), (200, 300)).all()
        return image.file.backend

    def test_jpeg(self, tmp_path: Path, without: Callable[[str], None]) -> None:
        write_jpeg(tmp_path / "a")
        write_jpeg_tiles(tmp_path / "b")
        fast = [open_image(tmp_path / name).read((0, 0), (200, 300)) for name in "ab"]
        overview = open_image(tmp_path / "a").overview((25, 38))
        without("simplejpeg")
        assert (self.backend(tmp_path / "a"), self.backend(tmp_path / "b")) == ("pillow", "tiff")
        slow = [open_image(tmp_path / name).read((0, 0), (200, 300)) for name in "ab"]
        assert all((a == b).all() for a, b in zip(fast, slow, strict=True))
        slow_overview = open_image(tmp_path / "a").overview((25, 38))
        assert (slow_overview.int() - overview.int()).abs().max() <= 2

    @pytest.mark.parametrize("package", ["tifffile", "imagecodecs"])
    def test_tiff(self, tmp_path: Path, without: Callable[[str], None], package: str) -> None:
        write_tiles(tmp_path / "a")
        without(package)
        assert self.backend(tmp_path / "a") in ("pillow", "openslide")
        (tmp_path / "a").write_bytes(b"II*\0" + bytes(100))
        if package == "tifffile":
            with pytest.raises(MissingExtraError, match="pip install 'tifffile'") as error:
                open_image(tmp_path / "a")
            assert isinstance(error.value, FoveateError)

    def test_openslide(self, tmp_path: Path, without: Callable[[str], None]) -> None:
        write_tiles(tmp_path / "a")
        without("openslide")
        assert self.backend(tmp_path / "a") == "tiff"
        (tmp_path / "a.dcm").write_bytes(bytes(128) + b"DICM" + bytes(200))
        with pytest.raises(MissingExtraError, match="pip install 'openslide-python openslide-bin'"):
            open_image(tmp_path / "a.dcm")
        write_png(tmp_path / "a.png")
        assert self.backend(tmp_path / "a.png") == "pillow"


def test_reading_does_not_change_what_others_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_tiles(tmp_path / "a")
    open_image(tmp_path / "a").read((0, 0), (9, 9))
    logging.getLogger("tifffile").warning("somebody else's")
    assert "somebody else's" in caplog.text


def test_zero_sized_arrays_are_still_refused() -> None:
    with pytest.raises(FoveateError, match="not empty"):
        open_image(np.zeros((0, 5, 3), np.uint8))
