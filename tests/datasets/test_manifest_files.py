"""Images of a user's that stay in their files, and files that fail when it is too late."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage
from torch.utils.data import DataLoader

from foveate.datasets import Batch, Manifest, ManifestDataset, Subset
from foveate.datasets.file_batch import FileBatch
from foveate.errors import DataError
from foveate.images import TensorImage
from slides import damage, slides

OVERVIEW = (16, 16)
MODES = {
    "pool": (2**22, True),
    "pool of different sizes": (2**22, False),
    "pixels": (1_150_000, False),  # as much as they take, and less than room for the largest
    "overviews": (20_000, False),
    "nothing": (0, False),
}
"""Bytes that may be kept, and whether the images are of one size, for each way to keep them."""


def train_part(table: Path, memory: int = 0, strict: bool = False) -> Subset:
    part = Manifest(table).load(OVERVIEW, memory, strict).train
    assert isinstance(part, Subset)
    return part


def whole(part: Subset) -> ManifestDataset:
    assert isinstance(part.whole, ManifestDataset)
    return part.whole


def patches(batch: Batch, corner: int = 40) -> torch.Tensor:
    return batch.images.read_patches(torch.full((len(batch), 2, 2), corner), (20, 20))


def named(part: Subset, batch: Batch) -> list[str]:
    return [part.name(i) for i in batch.index.tolist()]


def loader(part: Subset, workers: int, **options: Any) -> DataLoader[Batch]:
    indices: Any = range(len(part))
    return DataLoader(indices, 4, num_workers=workers, collate_fn=part.gather, **options)


@pytest.mark.parametrize("mode", MODES)
def test_images_are_the_same_however_they_are_kept(tmp_path: Path, mode: str) -> None:
    memory, alike = MODES[mode]
    part = train_part(slides(tmp_path, alike=alike), memory)
    kept = whole(part).kept
    found = {"pool": kept.pool, "pixels": kept.pixels, "overviews": kept.given, "nothing": 1}
    kind = next(name for name, value in found.items() if value is not None)
    assert kind == mode.removesuffix(" of different sizes")
    for workers in (0, 1):
        for batch in loader(part, workers):
            values = torch.tensor(
                [10 + 10 * int(name[7]) + int(name[5]) for name in named(part, batch)]
            )
            assert (patches(batch) == values.view(-1, 1, 1, 1, 1)).all()
            assert (batch.images.overviews(OVERVIEW) == values.view(-1, 1, 1, 1)).all()
            assert (batch.images.overviews((5, 4)) == values.view(-1, 1, 1, 1)).all()
            assert batch.images.sizes == [
                (128, 128) if alike or "-0" not in name else (96, 96) for name in named(part, batch)
            ]


def test_images_in_memory_have_the_overviews_of_their_files(tmp_path: Path) -> None:
    """A decoder that shrinks is not a resampling; the model is to see the same either way."""
    table = slides(tmp_path, count=2)
    noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)
    for path in tmp_path.glob("*.tif"):
        PillowImage.fromarray(noise).save(path, "JPEG")
    in_memory, in_files = (train_part(table, memory).gather([0]) for memory in (2**22, 0))
    overview = in_memory.images.overviews(OVERVIEW)
    assert torch.equal(overview, in_files.images.overviews(OVERVIEW))
    resampled = TensorImage(patches_of_all(in_memory)[0, 0]).overview(OVERVIEW)
    assert not torch.equal(overview[0], resampled)


def patches_of_all(batch: Batch) -> torch.Tensor:
    return batch.images.read_patches(torch.zeros(len(batch), 1, 2).long(), (128, 128))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_that_fails_late_is_black_once_and_then_left_out(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = slides(tmp_path)
    damage(tmp_path / "train0-2.tif")
    manifest = Manifest(table)
    part = manifest.load(OVERVIEW, memory=0).train
    assert isinstance(part, Subset)
    assert not manifest.problems
    with caplog.at_level(logging.WARNING):
        first = [
            (name, patch.max())
            for batch in loader(part, workers)
            for name, patch in zip(named(part, batch), patches(batch), strict=True)
        ]
    assert [name for name, value in first if value == 0] == ["train0-2.tif"]
    assert len(first) == 12
    assert len(caplog.records) == 1
    assert "train0-2.tif" in caplog.text
    assert "left out of the rest of the run" in caplog.text
    assert manifest.failures() == ["train0-2.tif"]

    second = [name for batch in loader(part, workers) for name in named(part, batch)]
    assert "train0-2.tif" not in second
    assert len(second) == 11


def test_in_evaluation_every_image_keeps_its_place(tmp_path: Path) -> None:
    table = slides(tmp_path)
    damage(tmp_path / "test3-1.tif")
    part = Manifest(table).load(OVERVIEW, memory=0).test
    for _ in range(2):
        batch = part.gather(range(6))
        assert [part.name(i) for i, p in enumerate(patches(batch)) if p.max() == 0] == [
            "test3-1.tif"
        ]


def test_a_batch_of_nothing_but_failures_is_black(tmp_path: Path) -> None:
    table = slides(tmp_path)
    damage(tmp_path / "train0-2.tif")
    part = train_part(table)
    row = [part.name(i) for i in range(len(part))].index("train0-2.tif")
    for _ in range(2):
        batch = part.gather([row])
        assert len(batch) == 1
        assert patches(batch).max() == 0


def test_a_file_that_vanishes_is_left_out_too(tmp_path: Path) -> None:
    part = train_part(slides(tmp_path))
    (tmp_path / part.name(0)).write_bytes(b"")
    for image in whole(part).files:
        image.close()
    overviews = part.gather([0, 1]).images.overviews((8, 8))
    assert overviews[0].max() == 0
    assert overviews[1].min() > 0
    assert whole(part).failures() == [part.name(0)]


@pytest.mark.parametrize("workers", [0, 1])
def test_strict_makes_it_an_error(tmp_path: Path, workers: int) -> None:
    table = slides(tmp_path)
    damage(tmp_path / "train0-2.tif")
    part = train_part(table, strict=True)
    batches = list(loader(part, workers))
    with pytest.raises(DataError, match=r"cannot read tile .* of .*train0-2\.tif") as failure:
        list(map(patches, batches))
    assert "Traceback" not in str(failure.value)


def test_what_travels_by_pickle_is_small_and_reads_the_files(tmp_path: Path) -> None:
    part = train_part(slides(tmp_path), memory=2**22)
    copy = pickle.loads(pickle.dumps(part))
    assert len(pickle.dumps(part)) < 128 * 128
    assert torch.equal(patches(copy.gather([0, 3])), patches(part.gather([0, 3])))
    batch = train_part(tmp_path / "labels.csv").gather([1]).images
    assert torch.equal(pickle.loads(pickle.dumps(batch)).overviews((8, 8)), batch.overviews((8, 8)))


def test_spawned_workers(tmp_path: Path) -> None:
    part = train_part(slides(tmp_path), memory=2**22)
    batches = list(loader(part, 1, multiprocessing_context="spawn"))
    expected = list(loader(part, 0))
    for batch, other in zip(batches, expected, strict=True):
        assert torch.equal(patches(batch), patches(other))
        assert torch.equal(batch.images.overviews(OVERVIEW), other.images.overviews(OVERVIEW))


def test_a_batch_moves_with_its_overviews(tmp_path: Path, device: torch.device) -> None:
    batch = train_part(slides(tmp_path), memory=20_000).gather([0, 1]).images
    assert isinstance(batch, FileBatch)
    moved = batch.to(device)
    assert moved.overviews(OVERVIEW).device.type == device.type
    assert torch.equal(moved.overviews(OVERVIEW).cpu(), batch.overviews(OVERVIEW))
    corners = torch.zeros(2, 1, 2).long()
    assert moved.read_patches(corners, (4, 4)).device.type == device.type


@pytest.mark.parametrize(("memory", "spare"), [(2**22, 0), (50_000, 50_000 - 24 * 3 * 144), (9, 9)])
def test_what_images_in_files_leave_of_the_memory_is_known(
    tmp_path: Path, memory: int, spare: int
) -> None:
    """Twenty-four of 128x128; their overviews are of 12x12."""
    assert Manifest(slides(tmp_path)).load((12, 12), memory=memory).spare == spare
