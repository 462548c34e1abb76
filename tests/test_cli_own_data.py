"""Training from a CSV file and from class folders, as a user does it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage

from command import foveate
from foveate.cli.own_data import find_own_data
from slides import damage, write_slide

# Typer hands commands a context of another class than the one it has them ask for.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

QUICK = ("--epochs", "1", "--passes", "1", "--n-patches", "3", "--accelerator", "cpu")


def write_folder(folder: Path, images: int = 8) -> Path:
    """Two classes of small images of many sizes, some of them grey."""
    random = np.random.default_rng(0)
    for label, value in {"dark": 40, "light": 200}.items():
        (folder / label).mkdir(parents=True)
        for i in range(images):
            pixels = random.integers(0, 30, (50 + 3 * i, 70 - 2 * i, 3), dtype=np.uint8)
            pixels[20:32, 10:22] = value
            image = PillowImage.fromarray(pixels).convert("L" if i == 0 else "RGB")
            image.save(folder / label / f"{i}.{'png' if i % 2 else 'jpg'}")
    return folder


def write_table(folder: Path, *more: str) -> Path:
    """A table of the images in a folder."""
    paths = sorted(path.relative_to(folder) for path in folder.glob("*/*.*"))
    lines = ["path,label", *(f"{path},{path.parent.name}" for path in paths), *more]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder / "labels.csv"


def settings_of(run: Path) -> dict[str, object]:
    settings: dict[str, object] = json.loads((run / "settings.json").read_text())
    return settings


def test_train_resume_and_evaluate_class_folders(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, run = write_folder(tmp_path / "images"), tmp_path / "run"
    code, printed = foveate(capsys, "train", "images", "--out", "run", *QUICK)
    assert code == 0, printed
    assert "validation and test: 15 % each, by label, groups kept together" in printed
    assert "50x70 to 71x56, colour" in printed
    assert "kept in memory" in printed
    assert "3 patches of 28x28, deep attention, deep features, 1 pass an epoch" in printed
    assert "--overview-size, --patch-size" in printed
    assert "problems" not in printed
    assert "test error" in printed
    settings = settings_of(run)
    assert settings["root"] == str(folder)
    assert settings["classes"] == ["dark", "light"]
    assert (settings["patch_size"], settings["channels"]) == ([28, 28], 3)
    assert len((run / "split.csv").read_text().splitlines()) == 17
    assert len(list((run / "attention").glob("*.png"))) == 2

    # From another folder.
    monkeypatch.chdir("/")
    code, printed = foveate(capsys, "evaluate", str(run / "best.ckpt"))
    assert code == 0, printed
    assert "balanced accuracy" in printed
    code, printed = foveate(capsys, "train", "--resume", "--out", str(run), "--accelerator", "cpu")
    assert code == 0, printed
    assert "1 pass an epoch" in printed

    PillowImage.new("RGB", (60, 60)).save(folder / "dark" / "new.png")
    code, printed = foveate(capsys, "evaluate", str(run / "best.ckpt"))
    assert code == 2
    assert "has other rows than the run had" in printed
    split = ("--root", str(run / "split.csv"))
    code, printed = foveate(capsys, "evaluate", str(run / "best.ckpt"), *split)
    assert code == 0, printed


def test_a_table_with_damage_is_trained_on_what_is_left(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "images")
    (folder / "dark" / "1.png").write_text("no image")
    table = write_table(
        folder, "dark/0.jpg,light", "gone [1].png,dark", "dark/2.jpg,", "x.png,rare"
    )
    out = ("--out", str(tmp_path / "strict"))
    code, printed = foveate(capsys, "train", str(table), "--strict", *out, *QUICK)
    assert code == 2
    assert "5 problems" in printed
    assert "labels.csv has 5 problems, listed above; mend them, or leave --strict away" in printed
    assert not (tmp_path / "strict").exists()

    run = tmp_path / "run"
    options = ("--workers", "1", "--memory", "0", "--out", str(run))
    code, printed = foveate(capsys, "train", str(table), *options, *QUICK)
    assert code == 0, printed
    for problem in ("two labels", "missing file", "no label", "one image", "unreadable file"):
        assert problem in printed
    assert "gone [1].png" in printed
    assert "read from their files (see --memory)" in printed
    assert len((run / "problems.csv").read_text().splitlines()) == 6
    assert settings_of(run)["classes"] == ["dark", "light"]
    code, printed = foveate(capsys, "evaluate", str(run / "best.ckpt"))
    assert code == 0, printed


def test_a_file_that_fails_in_training_is_left_out_and_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = ["path,label,split"]
    for i in range(16):
        part = ("train", "train", "validation", "test")[i // 4]
        write_slide(tmp_path / f"{i}.tif", 50 + i, size=256)
        lines.append(f"{i}.tif,{'ab'[i % 2]},{part}")
    damage(tmp_path / "3.tif")
    table = tmp_path / "labels.csv"
    table.write_text("\n".join(lines))
    options = ("--memory", "0", "--overview-size", "32x32", "--patch-size", "16x16", *QUICK)

    run = tmp_path / "run"
    code, printed = foveate(capsys, "train", str(table), *options, "--out", str(run))
    assert code == 0, printed
    assert "as the table says" in printed
    assert "problems" not in printed
    assert "left out 1 files failed: 3.tif" in printed

    run = tmp_path / "strict"
    code, printed = foveate(capsys, "train", str(table), *options, "--strict", "--out", str(run))
    assert code == 2
    assert "cannot read tile" in printed
    assert "3.tif" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "'nowhere.csv' is not one of digits, megapixel-mnist, "),
        (["nowhere.csv"], "name a data set, a CSV file with the columns path,label, or a folder"),
        (["empty"], "empty has no class folders with images in them; lay them out as"),
        (
            ["other.csv"],
            "other.csv must have the columns path,label in its first line, but has a,b",
        ),
        (["image.png"], "image.png is no CSV file, as it is not text in UTF-8"),
        (["labels.csv", "--root", "x"], "labels.csv says where its images are; leave --root away"),
        (["labels.csv", "--out", "run"], "run holds a run already; add --resume or choose another"),
        (["labels.csv"], "none of the 2 images that labels.csv names can be used (the first"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "last.ckpt").touch()
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "labels.csv").write_text("path,label\na.png,x\nb.png,x\n")
    PillowImage.new("RGB", (6, 6)).save(tmp_path / "image.png")
    code, printed = foveate(capsys, "train", *arguments)
    assert code == 2
    assert message in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("on_gpu", "asked", "ahead"),
    [
        (False, None, False),
        (True, None, True),
        (False, True, True),
        (True, False, False),
    ],
)
def test_files_are_read_ahead_where_a_gpu_trains(
    tmp_path: Path, on_gpu: bool, asked: bool | None, ahead: bool
) -> None:
    overrides = {"seed": 0, "read_ahead": asked}
    folder = write_folder(tmp_path / "images")
    own = find_own_data(folder, "default", overrides, room=0, strict=False, on_gpu=on_gpu)
    assert own.settings.read_ahead is ahead


@pytest.mark.parametrize("option", ["--read-ahead", "--no-read-ahead"])
def test_images_are_read_from_their_files_ahead_or_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str
) -> None:
    folder, run = write_folder(tmp_path / "images"), tmp_path / "run"
    options = ("--out", str(run), "--memory", "0", "--batch-size", "3", option)
    code, printed = foveate(capsys, "train", str(folder), *QUICK, *options)
    assert code == 0, printed
    assert "read from their files" in printed
    assert settings_of(run)["read_ahead"] is (option == "--read-ahead")
