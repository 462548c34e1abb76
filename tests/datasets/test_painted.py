from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

from foveate.datasets import GERMAN, SWEDISH, ImageDataset, PaintedDataset
from foveate.datasets.folder import FileDataset
from foveate.datasets.painting.numerals import STROKES
from foveate.datasets.painting.overlay import Laid, Overlay
from foveate.datasets.painting.painted import PaintedBatch
from foveate.datasets.painting.signs import CANVAS, DIAMETER, MARGIN, draw_limit, draw_other
from foveate.errors import InputError
from foveate.images import TensorBatch

CLASSES = ("none", "50", "120")


def write_photos(
    root: Path, labels: str = "0 1 0 2", size: tuple[int, int] = (200, 160)
) -> FileDataset:
    numbers = [int(label) for label in labels.split()]
    paths = []
    for i in range(len(numbers)):
        paths.append(root / f"{i}.png")
        PillowImage.new("RGB", size, (90, 20 + 10 * i, 60)).save(paths[-1])
    return FileDataset(paths, numbers, CLASSES, keep=True)


def pixels(dataset: ImageDataset, *index: int) -> torch.Tensor:
    batch = dataset.images(index)
    assert isinstance(batch, PaintedBatch)
    return batch.stack.pixels


def test_photographs_come_first_and_painted_classes_in_turn(tmp_path: Path) -> None:
    photos = write_photos(tmp_path)
    dataset = PaintedDataset(photos, 7, GERMAN)
    assert dataset.labels.tolist() == [0, 1, 0, 2, 0, 1, 2, 0, 1, 2, 0]
    assert dataset.classes == CLASSES
    assert set(dataset.photo_of[4:]) <= {0, 2}
    assert dataset.name(1) == "1.png"
    assert dataset.name(5) == f"{dataset.photo_of[5]}.png, painted 1"
    whole = TensorBatch(pixels(dataset, 0, 1, 2, 3))
    assert torch.equal(whole.pixels[:, 1, 0, 0], torch.tensor([20, 30, 40, 50], dtype=torch.uint8))
    assert (whole.pixels == whole.pixels[..., :1, :1]).all()


def test_only_the_sign_and_what_is_near_it_differs_from_the_photograph(tmp_path: Path) -> None:
    dataset = PaintedDataset(write_photos(tmp_path), 30, GERMAN)
    for index in range(4, 34):
        painted = pixels(dataset, index)[0].int()
        photo = pixels(dataset, dataset.photo_of[index])[0].int()
        changed = (painted != photo).any(dim=0)
        boxes = dataset.truth(index)
        assert changed.float().mean() < 0.5
        assert (len(boxes) > 0) == (dataset.labels[index] > 0)
        for y0, x0, y1, x1 in boxes.round().int().tolist():
            inside = changed[max(0, y0 + 3) : y1 - 3, max(0, x0 + 3) : x1 - 3]
            assert inside.float().mean() > 0.5


def test_the_seed_decides_every_image(tmp_path: Path) -> None:
    photos = write_photos(tmp_path)
    every = list(range(12))
    first = pixels(PaintedDataset(photos, 8, GERMAN, seed=3), *every)
    again = PaintedDataset(photos, 8, GERMAN, seed=3)
    assert torch.equal(pixels(again, 11, 5), first[[11, 5]])
    assert torch.equal(pixels(pickle.loads(pickle.dumps(again)), *every), first)
    assert not torch.equal(pixels(PaintedDataset(photos, 8, GERMAN, seed=4), *every), first)
    assert torch.equal(
        pixels(PaintedDataset(photos, 5, GERMAN, seed=3), 4)[:, :, :1], first[4:5, :, :1]
    )


def test_patches_and_overviews_show_the_same_image(tmp_path: Path) -> None:
    batch = PaintedDataset(write_photos(tmp_path), 8, GERMAN).images([5, 1, 9])
    plain = TensorBatch(batch.stack.pixels)
    corners = torch.tensor([[[-5, 3], [40, 100]]] * 3)
    assert torch.equal(batch.read_patches(corners, (30, 20)), plain.read_patches(corners, (30, 20)))
    assert torch.equal(batch.overviews((40, 50)), plain.overviews((40, 50)))
    assert batch.sizes == [(160, 200)] * 3
    assert torch.equal(batch.to("cpu").stack.pixels, plain.pixels)


def test_a_batch_takes_the_sources_of_another(tmp_path: Path) -> None:
    dataset = PaintedDataset(write_photos(tmp_path), 8, GERMAN)
    one, other = dataset.images([5, 1, 9]), dataset.images([0, 6, 8])
    assert one.kind == other.kind
    assert one.kind != PaintedDataset(dataset.photos, 8, GERMAN).images([5, 1, 9]).kind
    assert torch.equal(one.with_sources(other.sources).stack.pixels, other.stack.pixels)


def test_what_is_laid_over_covers_by_its_share() -> None:
    picture = np.array([[[200, 100, 0, 255], [200, 100, 0, 51]]], dtype=np.uint8)
    overlay = Overlay([[], [Laid(picture, (2, 3)), Laid(picture[:, :1], (0, 0))]], [[], []])
    images = torch.full((3, 3, 3, 5), 100, dtype=torch.uint8)
    expected = images.clone()
    expected[1:, :, 2, 3] = expected[1:, :, 0, 0] = torch.tensor([200, 100, 0], dtype=torch.uint8)
    expected[1:, :, 2, 4] = torch.tensor([120, 100, 80], dtype=torch.uint8)
    assert torch.equal(overlay.lay(images, torch.tensor([0, 1, 1])), expected)


def test_painted_signs_are_hints_and_photographs_have_none(tmp_path: Path) -> None:
    dataset = PaintedDataset(write_photos(tmp_path), 8, GERMAN)
    assert dataset.photos.images([0]).hints is None
    hints = dataset.images(range(12)).hints
    assert hints[:4].isnan().all()
    for index in range(4, 12):
        there = hints[index][~hints[index].isnan().any(-1)]
        torch.testing.assert_close(there, dataset.truth(index).float())
    assert any(len(dataset.truth(index)) for index in range(4, 12))


def test_nothing_is_laid_over_where_nothing_is_painted(tmp_path: Path) -> None:
    dataset = PaintedDataset(write_photos(tmp_path), 0, GERMAN)
    assert len(dataset) == 4
    assert torch.equal(
        pixels(dataset, 3),
        dataset.photos.images([3]).read_patches(
            torch.zeros(1, 1, 2, dtype=torch.int64), (160, 200)
        )[:, 0],
    )


def test_signs_are_of_their_country() -> None:
    for style in (GERMAN, SWEDISH):
        face = np.asarray(draw_limit("70", style, np.random.default_rng(0)))
        middle = CANVAS // 2
        ring, disc = face[middle, MARGIN + DIAMETER // 16], face[MARGIN + DIAMETER // 5, middle]
        assert ring[0] > 4 * ring[1]
        assert tuple(disc) == style.disc
    assert set("0123456789,tZONE") == set(STROKES)
    for seed in range(30):
        assert np.asarray(draw_other(("50",), GERMAN, np.random.default_rng(seed)))[..., 3].any()


def test_what_can_not_be_painted_is_said(tmp_path: Path) -> None:
    photos = write_photos(tmp_path, labels="1 2")
    with pytest.raises(InputError, match="class none, but there is none of it; leave --painted"):
        PaintedDataset(photos, 1, GERMAN)
    with pytest.raises(InputError, match="painted images must be 0 or more, but is -1"):
        PaintedDataset(photos, -1, GERMAN)
    mixed = write_photos(tmp_path, labels="0 0")
    PillowImage.new("RGB", (20, 30)).save(tmp_path / "1.png")
    with pytest.raises(
        InputError, match="photographs of one size, but these are of 30x20, 160x200"
    ):
        PaintedDataset(mixed, 1, GERMAN).images([0, 1])


def test_painting_says_how_far_it_is_and_is_done_once(tmp_path: Path) -> None:
    dataset = PaintedDataset(write_photos(tmp_path), 3, GERMAN)
    told: list[tuple[str, int, int]] = []
    for _ in range(2):
        dataset.paint(lambda *what: told.append(what))
    assert told == [("painting signs", done, 3) for done in (1, 2, 3)]


def test_what_a_gpu_does_is_what_a_cpu_does() -> None:
    chance = np.random.default_rng(0)
    laid = []
    for count in (0, 3, 1):
        sizes = chance.integers(1, 9, (count, 2))
        pictures = [chance.integers(0, 256, (h, w, 4), dtype=np.uint8) for h, w in sizes]
        laid.append([Laid(picture, (2 * i, 3 * i)) for i, picture in enumerate(pictures)])
    overlay = Overlay(laid, [[], [], []])
    images = torch.from_numpy(chance.integers(0, 256, (4, 3, 16, 20), dtype=np.uint8))
    index = torch.tensor([1, 0, 2, 1])
    expected = overlay.lay(images.clone(), index)
    found = images.clone()
    overlay._lay_windows(found, index)
    assert torch.equal(found, expected)
    assert not torch.equal(found, images)
