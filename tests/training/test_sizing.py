from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

from foveate.datasets import Manifest
from foveate.errors import InputError
from foveate.training import build_model, build_splits, settings_for
from foveate.training.sizing import choose_sizes, settings_for_manifest
from foveate.types import Size


@pytest.mark.parametrize(
    ("size", "overview", "patch", "attention"),
    [
        ((28, 28), (28, 28), 12, "deep"),
        ((300, 300), (100, 100), 32, "deep"),
        ((500, 500), (125, 125), 32, "deep"),
        ((800, 1360), (200, 340), 68, "pooled"),
        ((3000, 4000), (384, 512), 128, "pooled"),
        ((4000, 3000), (512, 384), 128, "pooled"),
        ((80_000, 100_000), (410, 512), 128, "deep"),
        ((60, 4000), (16, 512), 28, "deep"),
        ((3, 3), (16, 16), 4, "deep"),
    ],
)
def test_the_rule(size: Size, overview: Size, patch: int, attention: str) -> None:
    chosen = choose_sizes([size] * 5)
    assert chosen.overview_size == overview
    assert chosen.patch_size == (patch, patch)
    assert chosen.attention == attention
    assert (chosen.n_patches, chosen.feature) == (10, "deep")


def test_the_median_decides() -> None:
    sizes = [(400, 400)] * 5 + [(20, 20), (50_000, 90_000)]
    assert choose_sizes(sizes).overview_size == choose_sizes([(400, 400)]).overview_size
    mixed = choose_sizes([(3000, 4000), (4000, 3000)])
    assert mixed.overview_size == (512, 512)


@pytest.mark.parametrize(("images", "passes"), [(3, 20), (100, 5), (417, 1), (5000, 1)])
def test_few_images_are_seen_more_often_in_an_epoch(images: int, passes: int) -> None:
    assert choose_sizes([(300, 300)], images).passes == passes


def test_attention_follows_sizes_that_are_given() -> None:
    size = [(800, 1360)]
    assert choose_sizes(size, overview_size=(80, 136)).attention == "deep"
    assert choose_sizes([(500, 500)], patch_size=(100, 100)).attention == "pooled"
    assert choose_sizes([(500, 500)], patch_size=(100, 50)).grid == (5, 10)


def test_no_images_say_so() -> None:
    with pytest.raises(InputError, match="cannot choose sizes for no images"):
        choose_sizes([])


@pytest.mark.parametrize("size", [(12, 12), (28, 28), (60, 500), (300, 200), (1300, 700)])
@pytest.mark.parametrize("method", ["ats", "mil", "cnn", "uniform"])
def test_what_is_chosen_works(size: Size, method: str) -> None:
    chosen = choose_sizes([size]).as_dict() | {"grid": (2, 2)}
    settings = settings_for("manifest", method=method, **chosen)
    model = build_model(settings, channels=3, classes=2).eval()
    images = [torch.zeros(3, *size, dtype=torch.uint8), torch.zeros(3, 41, 30, dtype=torch.uint8)]
    with torch.no_grad():
        assert model(images).logits.isfinite().all()


def write_set(folder: Path, images: int = 6) -> Path:
    for label, value in {"dark": 30, "light": 200}.items():
        (folder / label).mkdir(exist_ok=True)
        for i in range(images):
            pixels = np.full((60, 90 + i), value, np.uint8)
            PillowImage.fromarray(pixels).save(folder / label / f"{i}.png")
    return folder


def test_settings_say_all_that_is_needed_to_find_the_images_again(tmp_path: Path) -> None:
    manifest = Manifest(write_set(tmp_path), seed=5)
    settings = settings_for_manifest(manifest, seed=5, n_patches=3, epochs=None)
    assert settings.dataset == "manifest"
    assert settings.root == str(tmp_path)
    assert (settings.channels, settings.n_patches, settings.epochs) == (1, 3, 30)
    assert settings.class_weights
    assert settings.augment
    first, again = manifest.load(settings.overview_size), build_splits(settings)
    for part in ("train", "validation", "test"):
        one, other = getattr(first, part), getattr(again, part)
        assert [one.name(i) for i in range(len(one))] == [other.name(i) for i in range(len(other))]
        assert one.classes == other.classes


def test_the_recipe_of_the_paper_has_its_networks(tmp_path: Path) -> None:
    manifest = Manifest(write_set(tmp_path))
    assert settings_for_manifest(manifest, "paper").attention == "conv"
    assert settings_for_manifest(manifest, "paper", attention="deep").attention == "deep"
    assert not settings_for_manifest(manifest, "paper").prior


def test_rows_that_were_added_can_not_bring_training_images_into_the_test(tmp_path: Path) -> None:
    settings = settings_for_manifest(Manifest(write_set(tmp_path)))
    write_set(tmp_path, images=7)
    with pytest.raises(InputError, match=r"has other rows than the run had.*split\.csv .*--root"):
        build_splits(settings)
