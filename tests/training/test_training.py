"""Runs on tiny data, from end to end."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from foveate.datasets import MajorityTask, Splits
from foveate.errors import DataError, InputError
from foveate.training import (
    Classifier,
    Hardware,
    Order,
    Run,
    Settings,
    build_model,
    evaluate,
    load_classifier,
    read_log,
    settings_for,
    train,
)
from foveate.training.settings import METHODS

CPU = Hardware(accelerator="cpu", devices="1")


def tiny_splits(count: int = 24) -> Splits:
    """Four kinds of squares of 12x12 in images of 96x96."""
    labels = torch.arange(40) % 10
    pixels = (20 * (labels + 1)).byte()[:, None, None].expand(40, 12, 12).contiguous()
    task = MajorityTask(size=(96, 96), noise=2)
    made = [task.make(pixels.numpy(), labels.numpy(), count, seed) for seed in range(3)]
    return Splits(*made)


def tiny_settings(**overrides: Any) -> Settings:
    values: dict[str, Any] = {
        "epochs": 2,
        "batch_size": 8,
        "n_patches": 3,
        "patch_size": (16, 16),
        "overview_size": (24, 24),
        "grid": (6, 6),
    }
    return settings_for("digits", **values | overrides)


def run(folder: Path, **overrides: Any) -> Run:
    recipe = overrides.pop("train", {})
    return train(
        tiny_settings(**overrides), folder, CPU, progress=False, splits=tiny_splits(), **recipe
    )


@pytest.mark.parametrize(
    "overrides",
    [
        {"method": "ats"},
        {"method": "ats", "recipe": "paper"},
        {"method": "ats", "augment": True, "class_weights": True},
        {"method": "uniform"},
        {"method": "mil", "gated": True},
        {"method": "cnn", "scale": 0.5},
    ],
    ids=lambda value: " ".join(str(v) for v in value.values()),
)
def test_every_method_trains_and_is_evaluated_alike(
    tmp_path: Path, overrides: dict[str, Any]
) -> None:
    done = run(tmp_path / "run", **overrides)
    assert 0 <= done.metrics["test/error"] <= 1
    rows = read_log(done.curves)
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert all(float(row["train/loss"]) > 0 for row in rows)
    assert (rows[0]["train/entropy"] != "") == (overrides["method"] != "cnn")
    figures = evaluate(done.checkpoint, splits=done.splits)
    assert figures.summary["error"] == pytest.approx(done.metrics["test/error"], abs=1e-6)
    assert sum(map(sum, figures.confusion)) == 24
    saved = json.loads((done.folder / "settings.json").read_text())
    assert Settings.from_dict(saved) == tiny_settings(**overrides)


def weights(path: Path) -> dict[str, torch.Tensor]:
    content: dict[str, torch.Tensor] = torch.load(path, weights_only=False)["state_dict"]
    return content


class InterruptedRunError(Exception):
    pass


@pytest.mark.parametrize("sampler", ["systematic", "sequential"])
def test_stopping_and_resuming_ends_at_the_same_weights(
    tmp_path: Path, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"epochs": 3, "augment": True, "sampler": sampler}
    whole = run(tmp_path / "whole", **options)

    from foveate.training.module import Classifier

    step = Classifier.training_step

    def interrupted_step(self: Classifier, batch: Any, number: int) -> torch.Tensor:
        if self.current_epoch == 1 and number == 1:
            raise InterruptedRunError
        return step(self, batch, number)

    with monkeypatch.context() as patch:
        patch.setattr(Classifier, "training_step", interrupted_step)
        with pytest.raises(InterruptedRunError):
            run(tmp_path / "halves", **options)
    torch.manual_seed(99)
    halves = run(tmp_path / "halves", **options, train={"resume": True})

    first, second = weights(whole.folder / "last.ckpt"), weights(halves.folder / "last.ckpt")
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
    assert [row["epoch"] for row in read_log(halves.curves)] == ["1", "2", "3"]
    assert whole.metrics == halves.metrics


def test_two_processes_train_the_model_of_one(tmp_path: Path) -> None:
    """Same batches, same weights; each test image is counted once."""
    program = Path(__file__).with_name("two_processes.py")
    for processes in ("1", "2"):
        subprocess.run(
            [sys.executable, "-W", "ignore", str(program), str(tmp_path / processes), processes],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        )
    one, two = (weights(tmp_path / folder / "last.ckpt") for folder in ("1", "2"))
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], rtol=1e-4, atol=1e-5)
    errors = [float((tmp_path / folder / "error.txt").read_text()) for folder in ("1", "2")]
    assert errors[0] == pytest.approx(errors[1], abs=1e-6)
    assert (13 * errors[0]) == pytest.approx(round(13 * errors[0]), abs=1e-4)


def test_the_seed_decides_the_run(tmp_path: Path) -> None:
    runs = [run(tmp_path / str(number), seed=seed) for number, seed in enumerate([1, 1, 2])]
    first, same, other = (weights(done.folder / "last.ckpt") for done in runs)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_evaluation_over_draws_has_a_spread(tmp_path: Path) -> None:
    done = run(tmp_path / "run", sampler="replacement")
    figures = evaluate(done.checkpoint, draws=3, splits=done.splits)
    torch.testing.assert_close(figures.probabilities.sum(-1), torch.ones(len(done.splits.test)))
    assert figures.spread.keys() == figures.summary.keys()
    assert sum(map(sum, figures.confusion)) == 3 * 24
    again = evaluate(done.checkpoint, draws=3, splits=done.splits)
    assert figures == again
    torch.testing.assert_close(figures.probabilities, again.probabilities)


def test_early_stopping(tmp_path: Path) -> None:
    done = run(tmp_path / "run", epochs=8, learning_rate=1e-9, train={"patience": 1})
    assert len(read_log(done.curves)) < 8


def test_a_run_that_diverges_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training diverged: the loss of epoch \d is (nan|inf)"):
        run(tmp_path / "run", method="cnn", learning_rate=1e30, epochs=3)


def test_settings_are_read_back(tmp_path: Path) -> None:
    settings = tiny_settings(method="mil", seed=3)
    settings.save(tmp_path / "settings.json")
    assert Settings.load(tmp_path / "settings.json") == settings
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(DataError, match=r"cannot read the settings of a run from .*settings\.json"):
        Settings.load(tmp_path / "settings.json")


def test_a_folder_is_never_overwritten_by_accident(tmp_path: Path) -> None:
    run(tmp_path / "run", epochs=1)
    with pytest.raises(InputError, match="holds a run already; add --resume or choose another"):
        run(tmp_path / "run", epochs=1)
    with pytest.raises(InputError, match=r"holds no last.ckpt; leave --resume away"):
        run(tmp_path / "other", epochs=1, train={"resume": True})


def test_bad_checkpoints_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no checkpoint .*missing\.ckpt"):
        load_classifier(tmp_path / "missing.ckpt")
    (tmp_path / "bad.ckpt").write_text("not a checkpoint")
    with pytest.raises(DataError, match=r"is no checkpoint of foveate's, or is damaged"):
        load_classifier(tmp_path / "bad.ckpt")
    torch.save({"state_dict": {}}, tmp_path / "foreign.ckpt")
    with pytest.raises(DataError, match=r"is no checkpoint of foveate's"):
        load_classifier(tmp_path / "foreign.ckpt")


def test_evaluation_refuses_what_it_can_not_do(tmp_path: Path) -> None:
    done = run(tmp_path / "run", method="cnn", epochs=1)
    with pytest.raises(InputError, match="a cnn model draws nothing"):
        evaluate(done.checkpoint, draws=2, splits=done.splits)
    other = tiny_splits()
    for part in (other.train, other.validation, other.test):
        part.classes = ("a", "b")
    with pytest.raises(InputError, match=r"tells 0, 1, .* but the data has the classes a, b"):
        evaluate(done.checkpoint, splits=other)
    with pytest.raises(InputError, match="unknown part 'tset'"):
        evaluate(done.checkpoint, part="tset")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "atss"}, "unknown method 'atss'; choose one of ats, mil, cnn, uniform"),
        ({"sampler": "best"}, "unknown sampler 'best'"),
        ({"epochs": 0}, "epochs must be at least 1, but is 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"label_smoothing": 1.0}, "label_smoothing is a share, from 0 to below 1, but is 1.0"),
        ({"painted": 5}, "0 but for speed-limits and gtsdb-speed-limits, but is 5 for digits"),
    ],
)
def test_bad_settings_say_what_to_do(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings_for("digits", **values)


def test_settings_of_another_version_are_refused() -> None:
    with pytest.raises(DataError, match="colour unknown; use the version that wrote them"):
        Settings.from_dict(Settings().as_dict() | {"colour": "red"})


def test_order_changes_with_the_epoch_and_covers_everything() -> None:
    order = Order(20, 5, seed=0)
    first = list(order)
    assert first == list(order)
    order.set_epoch(1)
    assert first != list(order)
    assert sorted(itertools.chain(*first)) == list(range(20))
    assert list(Order(7, 3, seed=None)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert [len(batch) for batch in Order(7, 3, seed=0)] == [3, 3]


def test_smooth_labels_are_in_the_objective_and_not_in_the_loss() -> None:
    data = tiny_splits().train
    batch = data.gather(range(8))
    values = []
    for smoothing in (0.0, 0.2):
        torch.manual_seed(0)
        settings = tiny_settings(entropy=0.0, label_smoothing=smoothing)
        model = Classifier(build_model(settings, 1, 10), settings, data.classes, 1)
        generator = torch.Generator().manual_seed(0)
        values.append(model.objective(batch.images, batch.labels, generator))
        logits = model(batch.images, torch.Generator().manual_seed(0)).logits
    assert torch.equal(values[0]["objective"], values[0]["loss"])
    assert torch.equal(values[1]["loss"], values[0]["loss"])
    everywhere = -logits.log_softmax(-1).mean()
    expected = 0.8 * values[0]["loss"] + 0.2 * everywhere
    torch.testing.assert_close(values[1]["objective"], expected)


@pytest.mark.parametrize("feature", ["conv", "lenet", "resnet8"])
def test_weights_from_before_jitter_was_the_models_are_found(feature: str) -> None:
    settings = tiny_settings(jitter=0.1, feature=feature)
    old, new = (Classifier(build_model(settings, 1, 10), settings, tuple("abc"), 1) for _ in "ab")
    state = {
        name.replace("model.feature.", "model.feature.1."): value
        for name, value in old.state_dict().items()
    }
    for saved in (state, old.state_dict()):
        new.load_state_dict(saved)
        for name, value in new.state_dict().items():
            assert torch.equal(value, old.state_dict()[name])


def test_no_prior_no_curiosity_unless_it_is_asked_for() -> None:
    assert settings_for("megapixel-mnist", prior=False).curiosity == 0
    assert settings_for("megapixel-mnist", prior=False, curiosity=0.1).curiosity == 0.1


def test_the_paper_recipe_has_the_papers_patches_and_labels() -> None:
    assert settings_for("colon-cancer", "paper").patch_size == (27, 27)
    assert settings_for("megapixel-mnist", "paper").label_smoothing == 0


def test_few_patches_have_a_lower_rate_unless_one_is_given() -> None:
    assert settings_for("megapixel-mnist", n_patches=5).learning_rate == 5e-3
    assert settings_for("megapixel-mnist", n_patches=10).learning_rate == 1e-2
    assert settings_for("megapixel-mnist", n_patches=5, learning_rate=1.0).learning_rate == 1.0
    paper = settings_for("megapixel-mnist", "paper", n_patches=5)
    assert (paper.learning_rate, paper.batch_size) == (1e-3, 32)


@pytest.mark.parametrize(
    ("devices", "processes"), [("auto", 1), ("1", 1), ("3", 3), ("0,2", 2), ("1,", 1), ("-1", 1)]
)
def test_hardware_knows_how_many_processes_a_machine_has(devices: str, processes: int) -> None:
    assert Hardware("cpu", devices).processes == processes


OTHERWISE: dict[str, Any] = {
    "n_patches": 3,
    "sampler": "unordered",
    "attention": "deep",
    "prior": False,
    "smoothing": 0.5,
    "curiosity": 0.5,
    "jitter": 0.5,
    "feature": "lenet",
    "grid": (3, 3),
    "gated": True,
    "scale": 0.5,
}


@pytest.mark.parametrize("name", OTHERWISE)
@pytest.mark.parametrize("method", METHODS)
def test_settings_that_matter_are_those_that_change_a_model(method: str, name: str) -> None:
    size: dict[str, Any] = {
        "patch_size": (16, 16),
        "overview_size": (30, 30),
        "grid": (2, 2),
        "n_patches": 2,
    }
    plain = settings_for("digits", method=method, **size)
    images = torch.rand(2, 1, 60, 60)
    logits = []
    for settings in (plain, dataclasses.replace(plain, **{name: OTHERWISE[name]})):
        torch.manual_seed(0)
        model = build_model(settings, 1, 10)
        chance = {} if method == "cnn" else {"generator": torch.Generator().manual_seed(0)}
        logits.append(model(images, **chance).logits)
    assert torch.equal(*logits) is not plain.matters(name)
