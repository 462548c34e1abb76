from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage

from foveate.errors import InputError
from foveate.images import as_batch, open_image
from foveate.training import (
    Classifier,
    Failed,
    Predicted,
    build_model,
    predict_images,
    settings_for,
)
from reports.planted import planted_classifier, planted_file, planted_pixels

METHODS: list[dict[str, Any]] = [
    {"method": "ats"},
    {"method": "ats", "attention": "pooled"},
    {"method": "uniform"},
    {"method": "mil"},
    {"method": "cnn", "scale": 0.2},
]


def tiny_classifier(channels: int = 3, **overrides: Any) -> Classifier:
    values: dict[str, Any] = {
        "n_patches": 3,
        "patch_size": (16, 16),
        "overview_size": (24, 32),
        "grid": (3, 4),
    }
    settings = settings_for("digits", **values | overrides)
    classes = tuple("abc")
    return Classifier(build_model(settings, channels, 3), settings, classes, channels)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Images of three sizes, in grey and colour, one of them smaller than a patch."""
    folder, chance = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    shapes = [(100, 120, 3), (100, 120, 3), (90, 80), (300, 50, 3), (9, 11, 3)]
    paths = [folder / f"{number}.png" for number in range(len(shapes))]
    for path, shape in zip(paths, shapes, strict=True):
        PillowImage.fromarray(chance.integers(0, 256, shape, np.uint8)).save(path)
    return [str(path) for path in paths]


def predictions(classifier: Classifier, paths: list[str], **options: Any) -> list[Predicted]:
    found = list(predict_images(classifier, paths, device="cpu", **options))
    good = [seen for seen in found if isinstance(seen, Predicted)]
    assert len(good) == len(found)
    return good


@pytest.mark.parametrize("overrides", METHODS, ids=lambda value: " ".join(map(str, value.values())))
def test_every_method_predicts_alike_in_any_batch(
    files: list[str], overrides: dict[str, Any]
) -> None:
    classifier = tiny_classifier(**overrides)
    alone = predictions(classifier, files)
    together = predictions(classifier, files, batch_size=4)
    assert [seen.path for seen in together] == files
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one.out.logits, other.out.logits)
        assert one.out.logits.shape == (1, 3)
        if overrides["method"] == "cnn":
            assert one.out.draw is None
            continue
        assert one.out.draw is not None
        assert other.out.draw is not None
        assert torch.equal(one.out.draw.index, other.out.draw.index)
        assert one.out.patches is not None
        assert one.out.patches.shape[2:] == (3, 16, 16)


def test_a_target_in_a_file_is_found_where_it_is(tmp_path: Path) -> None:
    places = [(20, 7), (2, 41), (31, 2)]
    paths = [planted_file(tmp_path / f"{i}.png", *place) for i, place in enumerate(places)]
    for seen, (row, column) in zip(
        predictions(planted_classifier(), [str(path) for path in paths], batch_size=2),
        places,
        strict=True,
    ):
        assert seen.out.yx_level0 is not None
        assert seen.out.yx_level0.tolist() == [[[20 * row, 20 * column]]]
        assert seen.out.patches is not None
        assert (seen.out.patches == 255).all()
        assert seen.image.size == (680, 880)


def test_grey_models_get_grey_images(files: list[str]) -> None:
    for seen in predictions(tiny_classifier(channels=1), files):
        assert seen.image.channels == 1


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("method", ["ats", "mil"])
def test_bad_files_are_named_and_the_others_predicted(
    files: list[str], tmp_path: Path, batch_size: int, method: str
) -> None:
    cut_off = tmp_path / "cut off.png"
    cut_off.write_bytes(Path(files[0]).read_bytes()[:9000])
    (tmp_path / "text.png").write_text("no image")
    paths = [files[0], str(cut_off), files[1], str(tmp_path / "gone.png"), files[2]]
    paths.append(str(tmp_path / "text.png"))
    classifier = tiny_classifier(method=method)
    found = list(predict_images(classifier, paths, batch_size=batch_size, device="cpu"))
    assert [seen.path for seen in found] == paths
    assert [type(seen) for seen in found] == [Predicted, Failed] * 3
    for seen in found:
        if isinstance(seen, Failed):
            assert Path(seen.path).name in str(seen.error)
    good = [seen for seen in found if isinstance(seen, Predicted)]
    for seen, whole in zip(good, predictions(classifier, files[:3]), strict=True):
        torch.testing.assert_close(seen.out.logits, whole.out.logits)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_damage_that_shows_only_in_a_patch_is_found(tmp_path: Path, batch_size: int) -> None:
    paths = [tmp_path / "bad.tif", tmp_path / "good.tif"]
    options: dict[str, Any] = {"photometric": "rgb", "tile": (64, 64), "compression": "zlib"}
    for path in paths:
        pixels = planted_pixels(20, 7)
        with tifffile.TiffWriter(path) as tiff:
            tiff.write(pixels, subifds=1, **options)
            tiff.write(pixels[::4, ::4], subfiletype=1, **options)
    with tifffile.TiffFile(paths[0]) as tiff:
        page = tiff.pages[0]
        tile = 400 // 64 * -(-880 // 64) + 140 // 64
        start, count = page.dataoffsets[tile], page.databytecounts[tile]
    content = bytearray(paths[0].read_bytes())
    content[start : start + count] = b"x" * count
    paths[0].write_bytes(content)
    found = list(
        predict_images(
            planted_classifier(), [str(path) for path in paths], batch_size=batch_size, device="cpu"
        )
    )
    assert [type(seen) for seen in found] == [Failed, Predicted]
    assert isinstance(found[0], Failed)
    assert re.search(r"cannot read tile \(6, 2\) of level 0 of .*bad.tif", str(found[0].error))


def test_workers_find_what_this_process_finds(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_text("no image")
    paths = [*files, str(tmp_path / "bad.png"), files[0]]
    classifier = tiny_classifier()
    here = list(predict_images(classifier, paths, batch_size=2, device="cpu"))
    with warnings.catch_warnings():  # newer Pythons warn of threads that do not survive a fork
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        there = list(predict_images(classifier, paths, batch_size=2, workers=2, device="cpu"))
    assert [type(seen) for seen in there] == [type(seen) for seen in here]
    for one, other in zip(here, there, strict=True):
        if isinstance(one, Predicted) and isinstance(other, Predicted):
            assert torch.equal(one.out.logits, other.out.logits)
        elif isinstance(one, Failed) and isinstance(other, Failed):
            assert str(one.error) == str(other.error)


def test_draws_are_averaged_and_their_patches_kept(files: list[str]) -> None:
    classifier = tiny_classifier(sampler="replacement")
    alone = as_batch([open_image(files[0], channels=3)])
    generators = [torch.Generator().manual_seed(number) for number in range(4)]
    single = [classifier.eval()(alone, generator).logits for generator in generators]
    (seen,) = predictions(classifier, files[:1], draws=4)
    mean = torch.stack(single).softmax(-1).mean(0)
    torch.testing.assert_close(seen.out.logits.softmax(-1), mean.detach())
    assert seen.out.draw is not None
    assert seen.out.draw.index.shape == (1, 12)
    assert seen.out.draw.weight.sum().item() == pytest.approx(1.0)
    assert seen.out.patches is not None
    assert seen.out.patches.shape == (1, 12, 3, 16, 16)
    in_a_batch = predictions(classifier, files[::-1], draws=4, batch_size=3)[-1]
    assert torch.equal(in_a_batch.out.logits, seen.out.logits)


def test_scores_that_are_not_finite_are_a_failure(files: list[str]) -> None:
    classifier = tiny_classifier()
    with torch.no_grad():
        next(classifier.model.head.parameters()).fill_(float("nan"))  # type: ignore[union-attr]
    (seen,) = predict_images(classifier, files[:1], device="cpu")
    assert isinstance(seen, Failed)
    assert "are not finite; check its pixels" in str(seen.error)


def test_an_error_of_torch_is_the_images_failure(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = tiny_classifier()
    model = classifier.model.forward

    def forward(images: Any, **options: Any) -> Any:
        if (300, 50) in images.sizes:
            raise RuntimeError("not enough memory:\n you tried to allocate 9 TB")
        return model(images, **options)

    monkeypatch.setattr(classifier.model, "forward", forward)
    found = list(predict_images(classifier, files, batch_size=5, device="cpu"))
    (failed,) = [seen for seen in found if isinstance(seen, Failed)]
    assert failed.path == files[3]
    assert "cannot predict" in str(failed.error)
    assert "not enough memory: you tried" in str(failed.error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, but is 0"),
        ({"workers": -1}, "workers must be at least 0, but is -1"),
        ({"draws": -1}, "draws must be at least 0, but is -1"),
        ({"draws": 2}, "a mil model draws nothing; leave draws at 0"),
    ],
)
def test_numbers_that_can_not_be_say_so_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        predict_images(tiny_classifier(method="mil"), [], **options)


def test_no_images_are_no_predictions() -> None:
    assert predictions(tiny_classifier(), []) == []
