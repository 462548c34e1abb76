"""Images in other processes: a loader's workers, however they are started."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest
import torch
from PIL import Image as PillowImage
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from foveate import Image, open_image
from foveate.images import FileImage, ListBatch, as_batch
from foveate.images.files.threads import each
from images.example_files import CASES, coloured

# Newer Pythons warn of every fork of a process with threads; this is about surviving them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


class Patches(Dataset[Tensor]):
    """One patch and the overview of each image."""

    def __init__(self, images: list[Image]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Tensor:
        image = self.images[index]
        patch = image.read((60, 90), (20, 30)).float().mean((1, 2))
        return torch.cat([patch, image.overview((20, 30)).float().mean((1, 2))])


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    kinds = ["tiles", "rows", "JPEG tiles", "pyramid", "JPEG", "PNG", "OpenSlide"]
    return [CASES[kind](tmp_path_factory.mktemp("images") / "image").image for kind in kinds]


@pytest.mark.parametrize(("start", "workers"), [("fork", 2), ("spawn", 1), ("forkserver", 1)])
def test_loaders_read_what_the_parent_reads(
    images: list[Image], start: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOVEATE_THREADS", "2")  # so that pools exist on both sides
    dataset = Patches(images)
    expected = [dataset[i] for i in range(len(dataset))]
    loader = DataLoader(
        dataset,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=start,
        timeout=60,
    )
    got = list(loader)
    assert len(got) == len(expected)
    for worker, parent in zip(got, expected, strict=True):
        assert torch.equal(worker, parent)
    assert torch.equal(dataset[0], expected[0])  # and the parent still reads


def _read(image: Image, expected: Tensor) -> None:
    assert torch.equal(image.read((100, 100), (90, 90)), expected)
    each(lambda _: image.read((0, 0), (5, 5)), range(8), threads=4)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)
def test_a_fork_while_other_threads_read(images: list[Image]) -> None:
    expected = [image.read((100, 100), (90, 90)) for image in images]
    stop = threading.Event()

    def keep_reading() -> None:
        while not stop.is_set():
            for image in images:
                image.read((0, 0), (200, 200))
                image.close()

    threads = [threading.Thread(target=keep_reading) for _ in range(3)]
    for thread in threads:
        thread.start()
    context = multiprocessing.get_context("fork")
    try:
        for image, pixels in zip(images, expected, strict=True):
            child = context.Process(target=_read, args=(image, pixels))
            child.start()
            child.join(60)
            assert child.exitcode == 0, image
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_worker_reads_overviews_ahead(tmp_path: Path) -> None:
    for i in range(3):
        PillowImage.fromarray(coloured(90 + i, 80)).save(tmp_path / f"{i}.png")
    batch = as_batch(sorted(tmp_path.iterdir()))
    assert isinstance(batch, ListBatch)
    expected = batch.overviews((9, 8))
    ahead = batch.prefetch((9, 8))
    for path in tmp_path.iterdir():
        path.unlink()
    for image in batch.images:
        assert isinstance(image, FileImage)
        image.close()
    assert torch.equal(ahead.to("cpu").overviews((9, 8)), expected)


def test_a_path_is_good_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PillowImage.fromarray(coloured(9, 8)).save(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    image = open_image("a.png")
    image.close()
    monkeypatch.chdir("/")
    assert image.read((0, 0), (1, 1)).tolist() == [[[1]], [[1]], [[1]]]
