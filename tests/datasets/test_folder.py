from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage
from torch import Tensor
from torch.utils.data import DataLoader

from foveate.datasets.folder import FileDataset, check_present, decode_image
from foveate.errors import DataError, InputError
from foveate.images import ListBatch, TensorBatch


def write_image(path: Path, height: int = 6, width: int = 9, seed: int = 0) -> Tensor:
    """Write random colours, and return them as (c, H, W)."""
    colours = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    PillowImage.fromarray(colours).save(path)
    return torch.from_numpy(colours).permute(2, 0, 1)


def written(folder: Path, **options: Any) -> tuple[FileDataset, list[Tensor]]:
    """Three images of which the last is larger, and what is in them."""
    paths = [folder / f"{name}.png" for name in "abc"]
    pixels = [write_image(path, 6 + i // 2, seed=i) for i, path in enumerate(paths)]
    return FileDataset(paths, [0, 1, 0], ("off", "on"), **options), pixels


def test_images_of_one_size_are_one_tensor(tmp_path: Path) -> None:
    dataset, pixels = written(tmp_path)
    batch = dataset.gather([1, 0])
    assert isinstance(batch.images, TensorBatch)
    assert torch.equal(batch.images.pixels, torch.stack([pixels[1], pixels[0]]))
    assert batch.labels.tolist() == [1, 0]
    assert (len(dataset), dataset.name(1), dataset.channels) == (3, "b.png", 3)


def test_images_of_other_sizes_are_a_list(tmp_path: Path) -> None:
    dataset, pixels = written(tmp_path)
    images = dataset.images([0, 2])
    assert isinstance(images, ListBatch)
    assert images.sizes == [(6, 9), (7, 9)]
    patches = images.read_patches(torch.tensor([[[2, 3]], [[5, 1]]]), (2, 4))
    assert torch.equal(patches[0, 0], pixels[0][:, 2:4, 3:7])
    assert torch.equal(patches[1, 0], pixels[2][:, 5:7, 1:5])


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_colour_space_becomes_the_channels_asked_for(
    tmp_path: Path, mode: str, channels: int
) -> None:
    PillowImage.new(mode, (9, 6)).save(tmp_path / "image.tiff")
    pixels = decode_image(tmp_path / "image.tiff", channels)
    assert pixels.shape == (channels, 6, 9)
    assert pixels.dtype == torch.uint8


def test_kept_images_are_decoded_once(tmp_path: Path) -> None:
    for keep in (True, False):
        dataset, pixels = written(tmp_path, keep=keep)
        dataset.images([0])
        write_image(tmp_path / "a.png", seed=9)
        assert torch.equal(dataset.images([0]).overviews((6, 9))[0], pixels[0]) == keep


def test_truth_is_what_was_given_or_unknown(tmp_path: Path) -> None:
    boxes = [torch.rand(m, 4, dtype=torch.float64) for m in (2, 0, 1)]
    known, unknown = written(tmp_path, boxes=boxes)[0], written(tmp_path)[0]
    for index, expected in enumerate(boxes):
        assert torch.equal(known.truth(index), expected)
        assert unknown.truth(index).shape == (0, 4)


def test_a_copy_by_pickle_reads_alike_and_carries_no_pixels(tmp_path: Path) -> None:
    dataset, pixels = written(tmp_path, keep=True)
    small = len(pickle.dumps(dataset))
    dataset.images([0])
    assert len(pickle.dumps(dataset)) == small
    copy = pickle.loads(pickle.dumps(dataset))
    assert torch.equal(copy.images([0]).overviews((6, 9))[0], pixels[0])
    assert torch.equal(dataset.images([0]).overviews((6, 9))[0], pixels[0])


def test_a_loader_with_workers(tmp_path: Path) -> None:
    dataset, pixels = written(tmp_path, keep=True)
    indices: Any = range(3)  # a data set, as far as a loader is concerned
    first, second = DataLoader(indices, batch_size=2, num_workers=1, collate_fn=dataset.gather)
    assert torch.equal(first.images.overviews((6, 9)), torch.stack(pixels[:2]))
    assert second.index.tolist() == [2]


@pytest.mark.parametrize("ending", ["png", "jpg", "bmp", "tiff"])
def test_a_truncated_file_is_named(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"broken.{ending}"
    write_image(path, 100, 100)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=rf"cannot decode .*broken\.{ending}: .*; replace it or"):
        decode_image(path)


def test_a_file_that_is_missing_or_no_image_or_too_deep_is_named(tmp_path: Path) -> None:
    dataset, _ = written(tmp_path)
    (tmp_path / "a.png").unlink()
    with pytest.raises(DataError, match=r"a\.png: there is no such file; restore it"):
        dataset.images([0])
    (tmp_path / "a.png").write_text("no image")
    with pytest.raises(DataError, match=r"a\.png: it is damaged or no image \(cannot identify"):
        dataset.images([1, 0])
    PillowImage.fromarray(np.zeros((6, 9), np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(DataError, match=r"deep\.png: its pixels are of mode I;16, .* convert"):
        decode_image(tmp_path / "deep.png")


def test_missing_files_are_counted(tmp_path: Path) -> None:
    write_image(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"cannot find .*b\.png \(2 of 3 .* from the moon"):
        check_present([tmp_path / f"{name}.png" for name in "abc"], "the moon")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paths": []}, "0 images, 2 labels and boxes of 0"),
        ({"labels": [0]}, "2 images, 1 labels and boxes of 2"),
        ({"boxes": []}, "2 images, 2 labels and boxes of 0"),
        ({"labels": [0, 2]}, "count the 2 classes from 0, but go from 0 to 2"),
        ({"labels": [-1, 1]}, "but go from -1 to 1"),
        ({"channels": 4}, "3 channels or 1, but 4"),
    ],
)
def test_bad_arguments_say_what_to_do(changes: dict[str, Any], message: str) -> None:
    arguments = {"paths": [Path("a"), Path("b")], "labels": [0, 1], "classes": ("off", "on")}
    with pytest.raises(InputError, match=message):
        FileDataset(**{**arguments, **changes})


def test_an_empty_batch_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one image, but the index is empty"):
        written(tmp_path)[0].gather([])
