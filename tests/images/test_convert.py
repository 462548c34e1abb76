from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage

from foveate import open_image
from foveate.errors import DataError, InputError, MissingExtraError
from foveate.images import FileImage, convert_image
from images.example_files import coloured, smooth

pytest.importorskip("pyvips")


def save(path: Path, pixels: np.ndarray, form: str, **options: Any) -> Path:
    if form == "TIFF":
        options = {"photometric": "rgb", **options}
        tifffile.imwrite(path, pixels, **options)
    else:
        PillowImage.fromarray(pixels).save(path, form, **options)
    return path


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("TIFF", {"rowsperstrip": 16, "compression": "zlib"}),
        ("TIFF", {"rowsperstrip": 700}),
        ("PNG", {}),
        ("JPEG", {"quality": 97}),
    ],
)
def test_a_flat_file_becomes_a_tiled_pyramid(
    tmp_path: Path, form: str, options: dict[str, Any]
) -> None:
    pixels = smooth(700, 900)
    source = save(tmp_path / "flat", pixels, form, **options)
    told: list[float] = []
    made = convert_image(source, tmp_path / "tiled.tif", tile=128, progress=told.append)
    assert made == tmp_path / "tiled.tif"
    with tifffile.TiffFile(made) as tiff:
        assert tiff.is_bigtiff
        assert tiff.pages.first.tile == (128, 128)
    image = open_image(made)
    assert isinstance(image, FileImage)
    assert image.file.backend == "tiff"
    assert image.levels == ((700, 900), (350, 450), (175, 225), (87, 112))
    expected = torch.from_numpy(pixels).permute(2, 0, 1).int()
    assert (image.read((0, 0), (700, 900)).int() - expected).abs().max() <= 6
    overview = image.overview((70, 90)).int()
    assert (overview - open_image(source).overview((70, 90)).int()).abs().max() <= 4
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flat", "tiled.tif"]


def test_colours_follow_the_rule_of_reading(tmp_path: Path) -> None:
    grey = smooth(200, 200)[..., 0]
    deep = grey.astype(np.uint16) * 16
    opaque = np.broadcast_to(np.where(np.arange(200) < 100, 0, 255), (200, 200))
    alpha = np.dstack([smooth(200, 200), opaque])
    ink = np.dstack([smooth(200, 200), np.full((200, 200), 64)]).astype(np.uint8)
    palette = PillowImage.fromarray(smooth(200, 200)).quantize(64)
    files = {
        "grey": save(tmp_path / "grey", grey, "PNG"),
        "deep": save(tmp_path / "deep", deep * 16, "PNG"),
        "stated": save(
            tmp_path / "stated",
            deep,
            "TIFF",
            photometric="minisblack",
            extratags=[(281, 3, 1, 4080, True)],
        ),
        "alpha": save(tmp_path / "alpha", alpha.astype(np.uint8), "PNG"),
        "ink": save(tmp_path / "ink", ink, "TIFF", photometric="separated"),
    }
    palette.save(tmp_path / "palette", "PNG")
    files["palette"] = tmp_path / "palette"
    for name, source in files.items():
        expected = open_image(source)
        got = open_image(convert_image(source, tmp_path / "made.tif", quality=100))
        assert got.channels == expected.channels, name
        error = got.read((0, 0), (200, 200)).int() - expected.read((0, 0), (200, 200)).int()
        assert error.abs().float().mean() < 1.5, name


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    source = save(tmp_path / "flat.png", coloured(300, 400), "PNG")
    content = source.read_bytes()
    source.write_bytes(content[: len(content) // 2])
    target = tmp_path / "tiled.tif"
    target.write_bytes(b"what was there")
    with pytest.raises(DataError, match=r"cannot read .*flat\.png: it is damaged"):
        convert_image(source, target)
    assert target.read_bytes() == b"what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flat.png", "tiled.tif"]


def test_an_error_of_the_progress_ends_it(tmp_path: Path) -> None:
    source = save(tmp_path / "flat.png", coloured(3000, 500), "PNG")

    def cancel(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_image(source, tmp_path / "tiled.tif", progress=cancel)
    assert [path.name for path in tmp_path.iterdir()] == ["flat.png"]


def test_bad_requests_say_what_to_do(tmp_path: Path) -> None:
    source = save(tmp_path / "a.png", coloured(30, 40), "PNG")
    with pytest.raises(InputError, match="a multiple of 16, but 100 was asked for"):
        convert_image(source, tmp_path / "b.tif", tile=100)
    with pytest.raises(InputError, match="from 1 to 100, but 0"):
        convert_image(source, tmp_path / "b.tif", quality=0)
    with pytest.raises(InputError, match=r"there is no folder .*; create it"):
        convert_image(source, tmp_path / "no" / "b.tif")
    with pytest.raises(InputError, match="it is the file to convert; choose another name"):
        convert_image(source, source)
    with pytest.raises(InputError, match="it is a folder"):
        convert_image(source, tmp_path)
    with pytest.raises(DataError, match="there is no such file"):
        convert_image(tmp_path / "c.png", tmp_path / "b.tif")
    tifffile.imwrite(tmp_path / "float.tif", np.zeros((64, 64), np.float32))
    with pytest.raises(DataError, match="its samples are floats"):
        convert_image(tmp_path / "float.tif", tmp_path / "b.tif")
    (tmp_path / "text").write_text("no image")
    with pytest.raises(DataError, match="damaged or no image"):
        convert_image(tmp_path / "text", tmp_path / "b.tif")


def test_without_pyvips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = save(tmp_path / "a.png", coloured(30, 40), "PNG")
    monkeypatch.setitem(sys.modules, "pyvips", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'foveate\[convert\]'"):
        convert_image(source, tmp_path / "b.tif")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_the_image(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from foveate.images import convert_image\n"
        "for source in sys.argv[1:]:\n"
        "    convert_image(source, source + '.tif')\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    print(next(line.split()[1] for line in lines if line.startswith('VmHWM')))\n"
    )
    for name, height in (("small", 512), ("large", 5000)):
        pixels = np.zeros((height, 4000, 3), np.uint8)
        save(tmp_path / name, pixels, "TIFF", rowsperstrip=16, compression="zlib")
    command = [sys.executable, "-c", program, str(tmp_path / "small"), str(tmp_path / "large")]
    environment = os.environ | {"VIPS_CONCURRENCY": "2"}
    printed = subprocess.check_output(command, env=environment, text=True)
    peaks = [int(line) / 1024 for line in printed.split()]
    assert peaks[1] - peaks[0] < 30  # megabytes; the image has 60
