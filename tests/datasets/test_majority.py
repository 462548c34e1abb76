from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from foveate.datasets import Digits, MajorityTask, MegapixelMNIST, PlacedDataset
from foveate.datasets.megapixel_mnist import load_mnist
from foveate.errors import DataError, InputError

TASK = MajorityTask(size=(200, 150), noise=4)


def tiny_digits() -> tuple[np.ndarray, np.ndarray]:
    """Digit d is a 12x12 square of brightness 20 (d + 1)."""
    labels = np.arange(40) % 10
    pixels = np.broadcast_to((20 * (labels + 1)).astype(np.uint8)[:, None, None], (40, 12, 12))
    return np.ascontiguousarray(pixels), labels


def tiny(count: int = 50, seed: int = 0, task: MajorityTask = TASK) -> PlacedDataset:
    return task.make(*tiny_digits(), count, seed)


def test_three_of_the_target_class_and_two_of_others() -> None:
    data = tiny()
    shown = data.glyphs[data.placements.glyph[:, :5], 0, 0].long() // 20 - 1
    assert (shown[:, :3] == data.labels[:, None]).all()
    assert (shown[:, 3:] != data.labels[:, None]).all()
    assert data.placements.glyph.shape == (50, 9)
    assert len(data.labels.unique()) == 10


def test_digits_lie_apart_and_inside() -> None:
    data = tiny(300)
    corner = data.placements.yx_level0[:, :5]
    assert corner.min() >= 0
    assert (corner <= torch.tensor([200 - 12, 150 - 12])).all()
    near = ((corner[:, :, None] - corner[:, None]).abs() < 12).all(-1)
    assert near.sum() == 300 * 5  # each only to itself


def test_the_composed_image_shows_what_was_placed(device: torch.device) -> None:
    data = tiny(task=MajorityTask(size=(200, 150), noise=0))
    batch = data.gather([3, 7]).to(device)
    pixels = batch.images.overviews((200, 150))
    assert pixels.device.type == device.type
    for row, index in enumerate([3, 7]):
        for y0, x0, y1, x1 in data.truth(index).long().tolist():
            patch = batch.images.read_patches(torch.tensor([[[y0, x0]]] * 2), (12, 12))[row, 0]
            assert patch.unique().numel() == 1
            assert (y1 - y0, x1 - x0) == (12, 12)
        assert pixels[row].count_nonzero() == 5 * 12 * 12


def test_what_comes_later_covers_what_came_before() -> None:
    data = tiny(200)
    pixels = data.gather(range(200)).images.overviews((200, 150))
    for index in range(200):
        y, x = data.placements.yx_level0[index, -1].tolist()
        last = data.glyphs[data.placements.glyph[index, -1]]
        assert torch.equal(pixels[index, 0, y : y + 12, x : x + 12], last)


def test_a_seed_fixes_every_image() -> None:
    images = [tiny(seed=seed).gather(range(9)).images.overviews((200, 150)) for seed in (4, 4, 5)]
    assert torch.equal(images[0], images[1])
    assert not torch.equal(images[0], images[2])


def test_overviews_are_kept_and_right() -> None:
    data = tiny()
    first = data.gather([1, 2, 3]).images.overviews((20, 15))
    again = data.gather([3, 1]).images.overviews((20, 15))
    assert torch.equal(again, first[[2, 0]])
    fresh = pickle.loads(pickle.dumps(data)).gather([3, 1]).images.overviews((20, 15))
    assert torch.equal(again, fresh)


def test_large_overviews_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tiny()
    kept = data.gather([1, 2]).images.overviews((20, 15))
    monkeypatch.setattr("foveate.images.memory.kept.LIMIT", 50 * 20 * 15 - 1)
    other = tiny()
    assert torch.equal(other.gather([1, 2]).images.overviews((20, 15)), kept)
    assert not any(other.kept._kept.values())


def test_the_paper_s_data_set_takes_megabytes() -> None:
    data = MajorityTask().make(*tiny_digits(), 5000, 0)
    kept = data.placements.glyph.nbytes + data.placements.yx_level0.nbytes + data.glyphs.nbytes
    assert kept < 10e6
    assert data.size == (1500, 1500)
    assert data.placements.glyph.shape == (5000, 55)


def test_digits_of_the_parts_differ() -> None:
    splits = Digits(train=20, validation=5, test=10).splits()
    assert [len(splits.train), len(splits.validation), len(splits.test)] == [20, 5, 10]
    assert splits.train.classes == tuple("0123456789")
    pictures = [
        {glyph.numpy().tobytes() for glyph in part.glyphs[:-50]}
        for part in (splits.train, splits.validation, splits.test)
        if isinstance(part, PlacedDataset)
    ]
    assert len(pictures) == 3
    assert not pictures[0] & pictures[2]
    assert not pictures[0] & pictures[1]


def write_mnist(folder: Path, packed: bool) -> None:
    pixels, labels = tiny_digits()
    for part in ("train", "t10k"):
        for name, array in (("images-idx3", pixels), ("labels-idx1", labels.astype(np.uint8))):
            header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(
                f">{array.ndim}I", *array.shape
            )
            content = header + array.tobytes()
            path = folder / f"{part}-{name}-ubyte"
            if packed:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_s_original_files(tmp_path: Path, packed: bool) -> None:
    write_mnist(tmp_path, packed)
    pixels, labels = load_mnist(tmp_path, "train")
    assert np.array_equal(pixels, tiny_digits()[0])
    assert np.array_equal(labels, tiny_digits()[1])
    splits = MegapixelMNIST(tmp_path, TASK, train=6, validation=4, test=5).splits()
    assert [len(splits.train), len(splits.validation), len(splits.test)] == [6, 4, 5]


def test_missing_and_damaged_mnist_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte \(or .*gz\) is not in .*--root"):
        MegapixelMNIST(tmp_path).splits()
    write_mnist(tmp_path, packed=True)
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte.gz is damaged"):
        MegapixelMNIST(tmp_path).splits()
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"not an idx file at all")
    with pytest.raises(DataError, match="is damaged"):
        MegapixelMNIST(tmp_path).splits()


def test_images_too_small_for_their_digits() -> None:
    with pytest.raises(InputError, match="at least 48 pixels high and wide"):
        tiny(task=MajorityTask(size=(40, 100)))
