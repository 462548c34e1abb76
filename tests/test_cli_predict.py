"""`foveate predict`, `report` and `convert`, from end to end on tiny data."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage

from command import foveate
from foveate import open_image
from foveate.cli.inputs import find_images
from foveate.datasets import Digits
from foveate.errors import DataError
from foveate.training import Classifier, Settings, build_model, settings_for

# Typer hands commands a context of another class than the one it has them ask for.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")


def save_checkpoint(path: Path, seed: int = 0, channels: int = 3, **overrides: Any) -> Settings:
    """An untrained model, as `foveate train` would have left it."""
    values: dict[str, Any] = {
        "n_patches": 3,
        "patch_size": (16, 16),
        "overview_size": (24, 32),
        "grid": (3, 4),
    }
    torch.manual_seed(seed)
    settings = settings_for("digits", **values | overrides)
    classes = tuple("0123456789")
    model = build_model(settings, channels, len(classes))
    classifier = Classifier(model, settings, classes, channels)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"hyper_parameters": dict(classifier.hparams), "state_dict": classifier.state_dict()}
    torch.save(content, path)
    return settings


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "best.ckpt")
    return tmp_path / "best.ckpt"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Five good images, two of one name; three that are none; and a file of another kind."""
    folder, chance = tmp_path / "images", np.random.default_rng(0)
    (folder / "sub").mkdir(parents=True)
    pixels = chance.integers(0, 256, (100, 140, 3), np.uint8)
    PillowImage.fromarray(pixels).save(folder / "x.png")
    PillowImage.fromarray(pixels[:80]).save(folder / "sub" / "x.png")
    PillowImage.fromarray(pixels).save(folder / "y.jpg")
    PillowImage.fromarray(pixels[..., 0]).save(folder / "[bold]z.bmp")
    tags = [
        (33550, 12, 3, (10.0, 10.0, 0.0), True),
        (33922, 12, 6, (0.0, 0.0, 0.0, 500_000.0, 6_000_000.0, 0.0), True),
        (34735, 3, 8, (1, 1, 0, 1, 3072, 0, 1, 32632), True),
    ]
    tifffile.imwrite(folder / "map.tif", pixels, photometric="rgb", tile=(64, 64), extratags=tags)
    (folder / "broken.png").write_bytes((folder / "x.png").read_bytes()[:9000])
    (folder / "empty.tif").write_bytes(b"")
    (folder / "text.svs").write_text("no slide")
    (folder / "notes.txt").write_text("nothing to see")
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_predict_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, checkpoint: Path, images: Path
) -> None:
    out = images  # so that its own pictures are among what is looked through
    code, printed = foveate(capsys, "predict", checkpoint, images, "--out", out, "--geojson")
    assert code == 0, printed
    assert "3 of 8 images failed" in printed
    assert "there is no" not in printed
    rows = table(out / "predictions.csv")
    names = ["[bold]z.bmp", "map.tif", "x.png", "y.jpg", "sub/x.png"]
    assert [row["path"] for row in rows] == [str(images / name) for name in names]
    for row in rows:
        shares = [float(row[name]) for name in "0123456789"]
        assert sum(shares) == pytest.approx(1.0, abs=1e-4)
        assert row["label"] == str(int(np.argmax(shares)))
    failed = [Path(row["path"]).name for row in table(out / "failed.csv")]
    assert failed == ["broken.png", "empty.tif", "text.svs"]

    endings = sorted("".join(path.suffixes) for path in (out / "predictions").iterdir())
    assert endings == [
        ".attention.tif",
        *[".geojson"] * 5,
        *[".jpg"] * 5,
        *[".json"] * 5,
        ".map.geojson",
    ]
    records = [json.loads(path.read_text()) for path in (out / "predictions").glob("*.json")]
    assert sorted(record["path"] for record in records) == sorted(row["path"] for row in rows)
    for record in records:
        image = open_image(record["path"])
        assert record["image_size"] == list(image.size)
        assert len(record["patches"]) == 3
    with tifffile.TiffFile(next((out / "predictions").glob("*.attention.tif"))) as tiff:
        assert tiff.pages[0].shape == (24, 32)

    code, printed = foveate(capsys, "predict", checkpoint, images, "--out", out, "--geojson")
    assert code == 0, printed
    assert "5 of 8 images are done already" in printed
    assert table(out / "predictions.csv") == rows


@pytest.mark.parametrize("method", ["mil", "cnn", "uniform"])
def test_predict_with_every_method(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, images: Path, method: str
) -> None:
    save_checkpoint(tmp_path / "a.ckpt", method=method, scale=0.2)
    out = tmp_path / "out"
    code, printed = foveate(capsys, "predict", tmp_path / "a.ckpt", images, "--out", out)
    assert code == 0, printed
    assert len(table(out / "predictions.csv")) == 5
    assert len(list((out / "predictions").glob("*.jpg"))) == (0 if method == "cnn" else 5)


class KilledError(Exception):
    pass


def test_a_killed_run_goes_on(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    checkpoint: Path,
    images: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from foveate.reports import PredictionFolder

    whole, halves = tmp_path / "whole", tmp_path / "halves"
    foveate(capsys, "predict", checkpoint, images, "--out", whole, "--batch-size", "3")
    add = PredictionFolder.add
    seen: list[str] = []

    def add_two(self: PredictionFolder, record: Any) -> None:
        if len(seen) == 2:
            raise KilledError
        seen.append(record.path)
        add(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(PredictionFolder, "add", add_two)
        with pytest.raises(KilledError):
            foveate(capsys, "predict", checkpoint, images, "--out", halves)
    with (halves / "predictions.csv").open("a") as file:
        file.write(f"{images / 'x.png'},3,0.1")  # and half a line
    code, printed = foveate(capsys, "predict", checkpoint, images, "--out", halves)
    assert code == 0
    assert "2 of 8 images are done already" in printed
    first, second = (table(folder / "predictions.csv") for folder in (whole, halves))
    assert [row["path"] for row in first] == [row["path"] for row in second]
    for one, other in zip(first, second, strict=True):
        assert float(one["7"]) == pytest.approx(float(other["7"]), rel=1e-4)


def test_pictures_that_are_asked_for_later_are_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, checkpoint: Path, images: Path
) -> None:
    out = tmp_path / "out"
    foveate(capsys, "predict", checkpoint, images / "x.png", "--out", out, "--no-pictures")
    assert not list((out / "predictions").glob("*.jpg"))
    foveate(capsys, "predict", checkpoint, images / "x.png", images / "y.jpg", "--out", out)
    assert len(list((out / "predictions").glob("*.jpg"))) == 2
    assert len(table(out / "predictions.csv")) == 2


def test_damage_that_shows_only_in_the_picture_does_not_end_the_run(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    checkpoint: Path,
    images: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from foveate import reports

    draw = reports.draw_attention

    def draw_some(*arguments: Any, **options: Any) -> None:
        if "y.jpg" in arguments[4]:
            raise DataError("cannot read tile (0, 0) of level 2 of y.jpg")
        draw(*arguments, **options)

    monkeypatch.setattr(reports, "draw_attention", draw_some)
    paths = [images / name for name in ("x.png", "y.jpg", "map.tif")]
    code, printed = foveate(capsys, "predict", checkpoint, *paths, "--out", tmp_path / "out")
    assert code == 0, printed
    assert "1 of 3 images failed" in printed
    assert len(table(tmp_path / "out" / "predictions.csv")) == 2


def test_another_checkpoint_in_the_same_folder_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, checkpoint: Path, images: Path
) -> None:
    out = tmp_path / "out"
    foveate(capsys, "predict", checkpoint, images, "--out", out, "--no-pictures")
    before = table(out / "predictions.csv")
    save_checkpoint(tmp_path / "other.ckpt", seed=1)
    code, printed = foveate(capsys, "predict", tmp_path / "other.ckpt", images, "--out", out)
    assert code == 2
    assert "do not belong with them; choose another --out" in printed
    assert table(out / "predictions.csv") == before


def test_strict_ends_at_the_first_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, checkpoint: Path, images: Path
) -> None:
    out = tmp_path / "out"
    code, printed = foveate(capsys, "predict", checkpoint, images, "--out", out, "--strict")
    assert code == 2
    assert "error: cannot read" in printed
    assert "broken.png" in printed
    assert [Path(row["path"]).name for row in table(out / "failed.csv")] == ["broken.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.ckpt", "images"], "there is no checkpoint missing.ckpt"),
        (["best.ckpt", "gone.png"], "none of 1 images could be predicted; failed.csv says why"),
        (["best.ckpt", "images/sub/none"], "none of 1 images could be predicted"),
        (["best.ckpt", "empty"], "found no images in empty; name image files, a folder"),
        (["best.ckpt", "bad.csv"], "bad.csv must have the column path in its first line"),
        (["best.ckpt", "gone.csv"], "cannot read gone.csv as a CSV file"),
        (["best.ckpt", "images", "--batch-size", "0"], "batch_size must be at least 1"),
        (["best.ckpt", "images", "--out", "images/x.png"], "cannot write predictions to images/x"),
        (["cnn.ckpt", "images", "--geojson"], "a cnn model does not attend to places"),
        (["cnn.ckpt", "images", "--draws", "2"], "a cnn model draws nothing"),
    ],
)
def test_what_is_wrong_with_predict_is_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    checkpoint: Path,
    images: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    save_checkpoint(tmp_path / "cnn.ckpt", method="cnn")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.csv").write_text("name,label\nx.png,1\n")
    out = [] if "--out" in arguments else ["--out", "out"]
    code, printed = foveate(capsys, "predict", *arguments, *out)
    assert code == 2
    assert message in printed


def test_images_are_found_in_tables_and_folders(tmp_path: Path, images: Path) -> None:
    listed = images.parent / "list.csv"
    listed.write_text("\ufefflabel;Path\n1;images/x.png\n2;s3://bucket/a.svs\n;\n3;images/x.png\n")
    address = "s3://bucket/a.svs"
    assert find_images([str(listed)]) == [str(images / "x.png"), address]
    found = find_images([str(images / "sub"), address, str(images / "sub"), "any.thing"])
    assert found == [str(images / "sub" / "x.png"), address, "any.thing"]
    (images / ".hidden.png").write_text("")
    (images / ".hidden").mkdir()
    (images / ".hidden" / "a.png").write_text("")
    assert len(find_images([str(images)], leave_out=images / "sub")) == 7


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run on a few small digits, without its training."""
    from foveate.training import building

    def digits(seed: int, **counts: int) -> Digits:
        return Digits(seed=seed, train=20, validation=10, test=20)

    monkeypatch.setattr(building, "Digits", digits)
    run = tmp_path / "my run"
    settings = save_checkpoint(run / "best.ckpt", channels=1, batch_size=8)
    settings.save(run / "settings.json")
    (run / "metrics.csv").write_text(
        "epoch,step,seconds,train/loss,train/error,train/entropy,validation/loss,validation/error\n"
        "1,10,12.5,2.3,0.9,4.1,2.2,0.8\n2,20,25.0,1.3,0.5,3.1,1.2,0.4\n"
    )
    return run


def test_report_on_a_run(capsys: pytest.CaptureFixture[str], run_folder: Path) -> None:
    code, printed = foveate(capsys, "report", run_folder, "--examples", "2")
    assert code == 0, printed
    assert "on 20 test images" in printed
    page = (run_folder / "report.html").read_text()
    assert "<title>foveate · my run</title>" in page
    assert "said " in page
    assert page.count('class="chart"') == 3
    assert page.count('class="picture"') >= 2
    assert "overview_size" in page
    code, printed = foveate(
        capsys,
        "report",
        run_folder,
        "--out",
        run_folder / "b.html",
        "--draws",
        "2",
        "--examples",
        "0",
    )
    assert code == 0, printed
    page = (run_folder / "b.html").read_text()
    assert "over draws" in page
    assert 'class="picture"' not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--out", "a.html"], "cannot read the settings of a run from nowhere"),
        (["my run", "--part", "tset"], "unknown part 'tset'; choose train, validation or test"),
        (["my run", "--examples", "-1"], "--examples must be 0 or more"),
        (["my run", "--out", "gone/a.html"], "there is no folder gone; create it"),
    ],
)
def test_what_is_wrong_with_report_is_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    run_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed = foveate(capsys, "report", *arguments)
    assert code == 2
    assert message in printed


def test_convert(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("pyvips")
    pixels = np.zeros((300, 500, 3), np.uint8)
    PillowImage.fromarray(pixels).save(tmp_path / "a.png")
    made = tmp_path / "a.tif"
    code, printed = foveate(capsys, "convert", tmp_path / "a.png", made, "--tile", "128")
    assert code == 0, printed
    assert "a.tif: " in printed
    assert open_image(made).levels[0] == (300, 500)
    code, printed = foveate(capsys, "convert", tmp_path / "a.png", made)
    assert code == 2
    assert "exists; add --force to replace it" in printed
    code, printed = foveate(capsys, "convert", tmp_path / "a.png", made, "--force")
    assert code == 0, printed
    for arguments, message in [
        (["a.png", "b.png"], "a tiled pyramid is a TIFF file"),
        (["gone.png", "b.tif"], "there is no such file"),
        (["a.png", "gone/b.tif"], "there is no folder"),
        (["a.png", "b.tif", "--tile", "100"], "multiple of 16"),
    ]:
        paths = [tmp_path / name for name in arguments[:2]]
        code, printed = foveate(capsys, "convert", *paths, *arguments[2:])
        assert code == 2
        assert message in printed
