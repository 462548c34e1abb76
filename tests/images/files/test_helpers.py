"""Patches that other processes read."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as Picture
from torch import Tensor

from foveate.errors import DataError, FoveateError
from foveate.images import FileImage, open_image, reading_processes
from foveate.images.files import helper
from foveate.images.files import helpers as module
from foveate.images.files.file_image import read_file_patches

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SIZE = (20, 30)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[FileImage]:
    folder = tmp_path_factory.mktemp("images")
    chance = np.random.default_rng(0)
    opened = []
    for i in range(5):
        pixels = chance.integers(0, 256, (100 + i, 90, 3), dtype=np.uint8)
        path = folder / (f"{i}.jpg" if i % 2 else f"{i}.tif")
        if i % 2:
            Picture.fromarray(pixels).save(path)
        else:
            tifffile.imwrite(path, pixels, tile=(32, 32), photometric="rgb")
        image = open_image(path)
        assert isinstance(image, FileImage)
        opened.append(image)
    return opened


def corners(images: list[FileImage], seed: int = 0) -> Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(-25, 100, (len(images), 3, 2), generator=chance)


@pytest.fixture(scope="module")
def others() -> Iterator[module.Helpers]:
    with reading_processes(2):
        yield started()


def started() -> module.Helpers:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        others = module.helpers()
        if others is not None:
            return others
        time.sleep(0.05)
    raise AssertionError("the processes did not start")


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    before = module._count
    yield
    assert module._count == before


def in_threads(images: list[FileImage], yx: Tensor, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    with monkeypatch.context() as patch:
        patch.setattr("foveate.images.files.file_image.helpers", lambda: None)
        return read_file_patches(images, yx, SIZE)


def test_they_read_what_threads_read(
    images: list[FileImage], others: module.Helpers, monkeypatch: pytest.MonkeyPatch
) -> None:
    yx = corners(images)
    expected = in_threads(images, yx, monkeypatch)
    monkeypatch.setattr("foveate.images.files.file_image.read_rectangles", None)
    assert torch.equal(read_file_patches(images, yx, SIZE), expected)
    assert torch.equal(read_file_patches(images[:1], yx[:1], SIZE), expected[:1])


def test_several_batches_may_be_on_their_way(
    images: list[FileImage], others: module.Helpers, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [corners(images, seed) for seed in range(20)]
    expected = [in_threads(images, yx, monkeypatch) for yx in wanted]
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda yx: read_file_patches(images, yx, SIZE), wanted))
    for patches, right in zip(read, expected, strict=True):
        assert torch.equal(patches, right)


def test_patches_that_no_buffer_has_room_for(
    images: list[FileImage], others: module.Helpers, monkeypatch: pytest.MonkeyPatch
) -> None:
    yx = corners(images).repeat(1, 400, 1)
    expected = in_threads(images, yx, monkeypatch)
    assert torch.equal(read_file_patches(images, yx, SIZE), expected)


def test_what_goes_wrong_there_is_raised_here_and_the_rest_goes_on(
    images: list[FileImage],
    others: module.Helpers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "gone.jpg"
    Picture.new("RGB", (90, 100)).save(path)
    gone = open_image(path)
    assert isinstance(gone, FileImage)
    path.unlink()
    gone.close()
    mixed = [images[0], gone, images[1], images[2]]
    with pytest.raises(DataError, match=r"gone\.jpg"):
        read_file_patches(mixed, corners(mixed), SIZE)
    yx = corners(images)
    expected = in_threads(images, yx, monkeypatch)
    assert torch.equal(read_file_patches(images, yx, SIZE), expected)


class OddError(Exception):
    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


def test_an_error_travels_or_is_told() -> None:
    error = pickle.loads(helper._packed(DataError("cannot read")))
    assert isinstance(error, DataError)
    assert str(error) == "cannot read"
    error = pickle.loads(helper._packed(OddError("tile", "short")))
    assert isinstance(error, FoveateError)
    assert str(error) == "OddError: tile: short"


def test_each_reads_what_it_has_read_but_no_more_than_its_share() -> None:
    others = module.Helpers(2)
    others.close()
    first = others._shares(["a", "b", "c", "d"])
    assert first == {0: [0, 1], 1: [2, 3]}
    assert others._shares(["c", "a", "d", "b"]) == {1: [0, 2], 0: [1, 3]}
    assert others._shares(["a", "b", "e"]) == {0: [0, 1], 1: [2]}
    crowded = others._shares(["a", "b", "e", "f", "a", "b"])
    assert sorted(i for share in crowded.values() for i in share) == list(range(6))
    assert max(map(len, crowded.values())) == 3


def test_one_that_dies_is_reported_in_a_line(images: list[FileImage]) -> None:
    lonely = module.Helpers(1)
    while not lonely.are_ready():
        time.sleep(0.05)
    (child,) = children(lonely._process.pid)
    os.kill(child, signal.SIGKILL)
    rooms = np.zeros((1, 3, *SIZE, 3), np.uint8)
    with pytest.raises(FoveateError, match=r"has ended.*--readers"):
        lonely.read([images[0].file], corners(images)[:1].tolist(), rooms)
    lonely.close()


def test_a_file_may_be_asked_for_otherwise_or_change(
    others: module.Helpers, tmp_path: Path
) -> None:
    path = tmp_path / "image.png"
    for value, size in [(50, 60), (200, 70)]:
        Picture.fromarray(np.full((size, size, 3), value, np.uint8)).save(path)
        for channels in (3, 1):
            image = open_image(path, channels=channels)
            assert isinstance(image, FileImage)
            read = read_file_patches([image], torch.zeros(1, 1, 2, dtype=torch.int64), (4, 4))
            assert read.shape == (1, 1, channels, 4, 4)
            assert (read == value).all()


def test_until_they_have_started_threads_read(
    images: list[FileImage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_helpers", None)
    monkeypatch.setattr(module, "_count", 1)
    monkeypatch.setattr(module.Helper, "is_ready", lambda self: False)
    assert module.helpers() is None
    yx = corners(images)
    assert read_file_patches(images, yx, SIZE).shape == (5, 3, 3, *SIZE)
    assert module._helpers is not None
    module._helpers.close()


def test_a_forked_process_reads_by_itself(others: module.Helpers) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if module.helpers() is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_they_end_with_a_process_that_is_killed_and_do_not_run_its_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time\n"
        "print('script', flush=True)\n"
        "from foveate.images import reading_processes\n"
        "from foveate.images.files import helpers as module\n"
        "with reading_processes(1):\n"
        "    while module.helpers() is None:\n"
        "        time.sleep(0.05)\n"
        "    print(module._helpers._process.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=paths, timeout=120
    )
    said, pid = done.stdout.split()
    assert said == "script"
    end = time.monotonic() + 30
    while _lives(int(pid)):  # it waits for those that it has forked
        assert time.monotonic() < end
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody may be there to collect it


def test_threads_that_ask_at_once_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Slow(module.Helpers):
        def __init__(self, count: int) -> None:
            time.sleep(0.1)
            made.append(count)

        def are_ready(self) -> bool:
            return True

    monkeypatch.setattr(module, "_helpers", None)
    monkeypatch.setattr(module, "_count", 3)
    monkeypatch.setattr(module, "Helpers", Slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: module.helpers(), range(4)))
    assert made == [3]
    assert len(set(map(id, found))) == 1
