from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from command import foveate
from foveate import cli

# Typer hands commands a context of another class than the one it has them ask for.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")


def test_a_full_gpu_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_: list[str]) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nand so on")

    monkeypatch.setattr(cli, "app", fill)
    code, printed = foveate(capsys, "train")
    assert code == 2
    assert printed.startswith("error: the GPU's memory is full; lower --batch-size")
    assert printed.endswith("(CUDA out of memory.)")


@pytest.mark.parametrize("epochs", [0, 1])
@pytest.mark.parametrize("exits", [True, False])
def test_an_interrupted_run_says_how_it_goes_on(
    exits: bool,
    epochs: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def train(settings: object, folder: Path, *args: object, **options: object) -> None:
        folder.mkdir()
        if epochs > 0:
            (folder / "last.ckpt").touch()
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            if exits:  # as Lightning does
                sys.exit(1)
            raise

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("foveate.training.train", train)
    code, printed = foveate(capsys, "train", "--out", "run")
    assert code == 130
    wanted = "`foveate train --resume --out run` goes on" if epochs else "nothing to go on from"
    assert wanted in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--readers", "-1"], "greater than or equal to 0"),
        (["train", "--steps-ahead", "0"], "steps_ahead must be at least 1, but is 0"),
        (["train", "nonsense"], "'nonsense' is not one of"),
        (["train", "--method", "magic"], "'magic' is not one of"),
        (["train", "--patch-size", "large"], "--patch-size must be HEIGHTxWIDTH, such as 50x50"),
        (["train", "--n-patches", "0"], "n_patches must be at least 1, but is 0"),
        (["train", "--painted", "9"], "0 but for speed-limits and gtsdb-speed-limits, but is 9"),
        (["train", "megapixel-mnist"], "is read from a folder; name it with --root"),
        (["train", "--resume"], "--resume needs --out"),
        (
            ["train", "--resume", "--out", "x", "--seed", "3"],
            "in x; leave --seed away",
        ),
        (["train", "--resume", "--out", "x"], "cannot read the settings of a run from x"),
        (["train", "--colour", "red"], "No such option"),
        (["evaluate", "missing.ckpt"], "there is no checkpoint missing.ckpt"),
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
    code, printed = foveate(capsys, *arguments)
    assert code == 2
    assert message in printed
    assert "Traceback" not in printed


def test_missing_data_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    code, printed = foveate(
        capsys, "train", "megapixel-mnist", "--root", str(tmp_path), "--out", out
    )
    assert code == 2
    assert "train-images-idx3-ubyte" in printed


def test_help_names_the_commands() -> None:
    printed = subprocess.check_output([sys.executable, "-m", "foveate.cli", "--help"], text=True)
    assert "train" in printed
    assert "evaluate" in printed


@pytest.mark.parametrize(
    ("command", "default"),
    [
        ("train", "runs/DATASET-METHOD-TIME"),
        ("train", "a quarter of it"),
        ("reproduce", "reproduced/EXPERIMENT"),
        ("report", "RUN/report.html"),
    ],
)
def test_help_says_what_a_default_stands_for(
    command: str,
    default: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, printed = foveate(capsys, command, "--help")
    assert code == 0
    assert f"({default})" in printed


def test_train_then_evaluate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foveate.datasets import Digits
    from foveate.training import building

    monkeypatch.setattr(
        building, "Digits", lambda seed: Digits(seed=seed, train=32, validation=16, test=16)
    )
    run = tmp_path / "run"
    code, printed = foveate(
        capsys, "train", "--epochs", "1", "--out", str(run), "--accelerator", "cpu"
    )
    assert code == 0, printed
    assert "test error" in printed
    assert "best.ckpt" in printed
    assert (run / "curves.png").stat().st_size > 1000
    assert len(list((run / "attention").glob("*.png"))) == 6

    code, printed = foveate(capsys, "train", "--resume", "--out", str(run), "--accelerator", "cpu")
    assert code == 0, printed
    assert "1 epoch," in printed

    figures = tmp_path / "figures.json"
    code, printed = foveate(
        capsys, "evaluate", str(run / "best.ckpt"), "--draws", "2", "--out", str(figures)
    )
    assert code == 0, printed
    assert "balanced accuracy" in printed
    assert json.loads(figures.read_text())["classes"] == list("0123456789")
