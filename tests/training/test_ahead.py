"""Training on images in files, whose patches are read a step ahead."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from foveate.datasets import Batch, Manifest, Splits
from foveate.errors import DataError
from foveate.images import AheadBatch, Choice, TensorBatch
from foveate.images.files.tile_cache import TILES
from foveate.training import Hardware, ImageData, Run, Settings, read_log, settings_for, train
from foveate.training.ahead import ReadAhead
from foveate.training.data import Upcoming
from foveate.training.module import Classifier
from slides import damage, slides
from training.two_processes import train_in

CPU = Hardware(accelerator="cpu", devices="1")
STEPS = 4  # of an epoch: twelve images, three in a step


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return slides(tmp_path_factory.mktemp("slides"), noise=True, alike=False)


def in_files(table: Path, strict: bool = False, known: bool = False) -> Splits:
    """Images in files, whose overviews may be known."""
    manifest = Manifest(table)
    room = len(manifest.images) * 3 * 24 * 24 if known else 0
    splits = manifest.load((24, 24), memory=room, strict=strict)
    assert splits.train.images([0]).in_files
    return splits


def settings_of(**overrides: Any) -> Settings:
    values: dict[str, Any] = {
        "epochs": 2,
        "batch_size": 3,
        "n_patches": 4,
        "patch_size": (16, 16),
        "overview_size": (24, 24),
        "grid": (4, 4),
        "learning_rate": 1e-3,
        "feature": "lenet",
        "augment": True,
    }
    return settings_for("digits", **values | overrides)


def run(folder: Path, splits: Splits, hardware: Hardware = CPU, **overrides: Any) -> Run:
    recipe = overrides.pop("train", {})
    settings = settings_of(**overrides)
    return train(settings, folder, hardware, progress=False, splits=splits, **recipe)


def weights(done: Run | Path) -> dict[str, Tensor]:
    folder = done.folder if isinstance(done, Run) else done
    content: dict[str, Tensor] = torch.load(folder / "last.ckpt", weights_only=False)["state_dict"]
    return content


def are_equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each batch has whose patches were read ahead."""
    counts: list[int] = []
    begin = AheadBatch.begin_patches

    def counted(self: AheadBatch, *args: Any) -> None:
        counts.append(len(self.sizes))
        begin(self, *args)

    monkeypatch.setattr(AheadBatch, "begin_patches", counted)
    return counts


@pytest.mark.parametrize("steps_ahead", [1, 2, 7])
def test_all_but_the_first_batch_of_an_epoch_are_read_ahead(
    table: Path, tmp_path: Path, begun: list[int], steps_ahead: int
) -> None:
    run(tmp_path / "run", in_files(table), steps_ahead=steps_ahead)
    assert begun == [3] * (STEPS - 1) * 2


@pytest.mark.parametrize(
    "overrides",
    [{"read_ahead": False}, {"sampler": "topk"}, {"method": "mil"}],
    ids=lambda value: " ".join(str(v) for v in value.values()),
)
def test_what_is_not_read_ahead_trains_all_the_same(
    table: Path, tmp_path: Path, begun: list[int], overrides: dict[str, Any]
) -> None:
    done = run(tmp_path / "run", in_files(table), epochs=1, **overrides)
    assert begun == []
    assert 0 <= done.metrics["test/error"] <= 1


@pytest.mark.parametrize("augment", [True, False])
def test_images_of_different_sizes_train_alike_in_memory_and_in_files(
    table: Path, tmp_path: Path, augment: bool
) -> None:
    options: dict[str, Any] = {"augment": augment, "any_way_up": augment, "read_ahead": False}
    files, memory = (
        weights(run(tmp_path / str(room), Manifest(table).load((24, 24), memory=room), **options))
        for room in (0, 2**24)
    )
    for name, value in files.items():
        torch.testing.assert_close(memory[name], value, rtol=0, atol=1e-5)


def test_images_in_memory_are_not_read_ahead(table: Path, tmp_path: Path, begun: list[int]) -> None:
    splits = Manifest(table).load((24, 24), memory=2**24)
    done = [
        run(tmp_path / str(ahead), splits, epochs=1, read_ahead=ahead) for ahead in (True, False)
    ]
    assert begun == []
    assert are_equal(*map(weights, done))


@pytest.mark.parametrize(("augment", "steps_ahead"), [(True, 1), (False, 1), (True, 3)])
def test_where_all_cells_are_drawn_reading_ahead_changes_nothing(
    table: Path, tmp_path: Path, begun: list[int], augment: bool, steps_ahead: int
) -> None:
    """Old attention chose the patches, and yet the estimate is the full model of now."""
    splits = in_files(table)
    options: dict[str, Any] = {
        "attention": "pooled",
        "augment": augment,
        "learning_rate": 1e-2,
        "steps_ahead": steps_ahead,
    }
    ahead, plain = (
        run(tmp_path / str(ahead), splits, read_ahead=ahead, **options) for ahead in (True, False)
    )
    assert len(begun) == 2 * (STEPS - 1)
    for name, value in weights(ahead).items():
        # Adam makes much of rounding; without the correction they would be 2e-2 apart.
        torch.testing.assert_close(value, weights(plain)[name], rtol=0, atol=1e-3)


class Repeated:
    """Makes anew what a graph would replay, and leaves it where the first was, as a graph does."""

    def __init__(self, make: Callable[[], Any], made: Any, module: Classifier) -> None:
        self.make, self.made, self.module = make, made, module
        self.gradients = [parameter.grad for parameter in module.parameters()]

    def replay(self) -> None:
        new = self.make()
        for old, tensor in zip(tensors_of(self.made), tensors_of(new), strict=True):
            old.copy_(tensor)
        for parameter, before in zip(self.module.parameters(), self.gradients, strict=True):
            if before is not None and parameter.grad is not None:
                before.copy_(parameter.grad)


def tensors_of(made: Any) -> list[Tensor]:
    if isinstance(made, dict):
        return list(made.values())
    return [made.packed.data]


@pytest.mark.parametrize("augment", [True, False])
def test_overviews_that_are_known_change_nothing(
    table: Path, tmp_path: Path, augment: bool
) -> None:
    done = [
        run(tmp_path / str(known), in_files(table, known=known), augment=augment, any_way_up=True)
        for known in (True, False)
    ]
    assert are_equal(*map(weights, done))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("augment", [True, False])
def test_steps_and_looks_ahead_can_be_replayed(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, augment: bool, known: bool
) -> None:
    splits = in_files(table, known=known)
    plain = run(tmp_path / "plain", splits, augment=augment)
    trained: list[Classifier] = []
    recorded: list[type] = []

    def speed_up(classifier: Classifier, *args: Any) -> None:
        trained.append(classifier)
        classifier.record()

    def record(make: Callable[[], Any], generator: torch.Generator) -> tuple[Repeated, Any]:
        made = make()
        recorded.append(type(made))
        return Repeated(make, made, trained[0]), made

    monkeypatch.setattr("foveate.training.run.speed_up", speed_up)
    monkeypatch.setattr("foveate.training.recording._recorded", record)
    replayed = run(tmp_path / "replayed", splits, augment=augment)
    assert recorded == [Choice, dict]
    for name, value in weights(plain).items():
        torch.testing.assert_close(weights(replayed)[name], value, rtol=0, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="records CUDA graphs")
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("augment", [True, False])
def test_on_a_gpu_it_is_replayed(table: Path, tmp_path: Path, augment: bool, known: bool) -> None:
    splits = in_files(table, known=known)
    replayed, plain = (
        run(
            tmp_path / compiles,
            splits,
            Hardware("gpu", "1", precision="32-true", compile=compiles, readers=2),
            augment=augment,
        )
        for compiles in ("auto", "off")
    )
    for name, value in weights(plain).items():
        torch.testing.assert_close(weights(replayed)[name], value, rtol=0, atol=2e-3)


def test_a_model_that_does_not_learn_draws_the_same(table: Path, tmp_path: Path) -> None:
    """Chance is that of the step that uses a batch, whenever it is drawn."""
    splits = in_files(table)
    losses = []
    for ahead in (True, False):
        done = run(tmp_path / str(ahead), splits, read_ahead=ahead, learning_rate=1e-30)
        losses.append([float(row["train/loss"]) for row in read_log(done.curves)])
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert losses[0][0] != losses[0][1]


@pytest.mark.parametrize(("known", "strict"), [(True, True), (False, False)])
def test_workers_have_no_say(table: Path, tmp_path: Path, known: bool, strict: bool) -> None:
    splits = in_files(table, strict=strict, known=known)
    done = [
        run(tmp_path / str(workers), splits, replace(CPU, workers=workers)) for workers in (0, 1)
    ]
    assert are_equal(*map(weights, done))


@pytest.mark.skipif(os.name != "posix", reason="sockets are handed to processes")
def test_readers_have_no_say(table: Path, tmp_path: Path) -> None:
    splits = in_files(table)
    done = [
        run(tmp_path / str(readers), splits, replace(CPU, readers=readers)) for readers in (0, 2)
    ]
    assert are_equal(*map(weights, done))


def test_tiles_are_kept_where_images_are_not(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []

    class Seen(Classifier):
        def training_step(self, batch: Upcoming, number: int) -> Tensor:
            limits.append(TILES.limit())
            return super().training_step(batch, number)

    monkeypatch.delenv("FOVEATE_CACHE_MB", raising=False)
    monkeypatch.setattr("foveate.training.run.Classifier", Seen)
    run(tmp_path / "run", replace(in_files(table), spare=2**30), epochs=1)
    assert limits == [2**30] * STEPS
    assert TILES.limit() == 2**28


class InterruptedRunError(Exception):
    pass


@pytest.mark.parametrize("steps_ahead", [1, 2])
def test_stopping_and_resuming_ends_at_the_same_weights(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps_ahead: int
) -> None:
    splits = in_files(table)
    options: dict[str, Any] = {"epochs": 3, "steps_ahead": steps_ahead}
    whole = run(tmp_path / "whole", splits, **options)
    step = Classifier.training_step

    def interrupted_step(self: Classifier, batch: Any, number: int) -> Tensor:
        if self.current_epoch == 1 and number == 2:
            raise InterruptedRunError
        return step(self, batch, number)

    with monkeypatch.context() as patch:
        patch.setattr(Classifier, "training_step", interrupted_step)
        with pytest.raises(InterruptedRunError):
            run(tmp_path / "halves", splits, **options)
    torch.manual_seed(99)
    halves = run(tmp_path / "halves", splits, **options, train={"resume": True})
    assert are_equal(weights(whole), weights(halves))
    assert whole.metrics == halves.metrics


def test_two_processes_train_the_model_of_one(table: Path, tmp_path: Path) -> None:
    train_in(tmp_path / "1", 1, table)
    program = Path(__file__).with_name("two_processes.py")
    subprocess.run(
        [sys.executable, "-W", "ignore", str(program), str(tmp_path / "2"), "2", str(table)],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    one, two = (weights(tmp_path / folder) for folder in ("1", "2"))
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], rtol=0, atol=1e-3)


def test_a_file_that_fails_is_left_out_and_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = slides(tmp_path, noise=True)
    damage(tmp_path / "train0-2.tif")
    manifest = Manifest(table)
    splits = manifest.load((24, 24), memory=0)
    with caplog.at_level(logging.WARNING, logger="foveate"):
        done = run(tmp_path / "run", splits)
    assert manifest.failures() == ["train0-2.tif"]
    assert len([record for record in caplog.records if "left out" in record.message]) == 1
    assert all(float(row["train/loss"]) > 0 for row in read_log(done.curves))


def test_with_strict_it_does(tmp_path: Path) -> None:
    table = slides(tmp_path, noise=True)
    damage(tmp_path / "train0-2.tif")
    with pytest.raises(DataError, match=r"cannot read tile .* of .*train0-2\.tif"):
        run(tmp_path / "run", in_files(table, strict=True))


@pytest.mark.parametrize("steps_ahead", [1, 2, 7])
def test_a_loader_that_looks_ahead(table: Path, steps_ahead: int) -> None:
    data = ImageData(in_files(table), batch_size=3, steps_ahead=steps_ahead)
    loader = data.train_dataloader()
    seen = list(loader)
    assert len(seen) == len(loader) == STEPS
    assert all(isinstance(upcoming, Upcoming) for upcoming in seen)
    batches = [upcoming.batch for upcoming in seen]
    for number, upcoming in enumerate(seen):
        expected = batches[number + 1 : number + 2 + steps_ahead]
        assert len(upcoming.following) == len(expected)
        assert all(a is b for a, b in zip(upcoming.following, expected, strict=True))
        assert upcoming.to("cpu") is upcoming


@pytest.fixture
def tensors() -> Callable[[int], Batch]:
    def make(value: int) -> Batch:
        pixels = torch.full((2, 3, 40, 30), value, dtype=torch.uint8)
        return Batch(TensorBatch(pixels), torch.tensor([value, value]), torch.arange(2))

    return make


def test_whole_images_are_copied_ahead(
    tensors: Callable[[int], Batch], device: torch.device
) -> None:
    ahead = ReadAhead((8, 8), (4, 4), lambda images, step: images)
    batches = [tensors(i) for i in range(6)]
    for step, batch in enumerate(batches):
        ahead.begin(batches[step + 1 : step + 3], step + 1, device)
        ready = ahead.take(batch, step, device)
        assert isinstance(ready.images, TensorBatch)
        assert ready.images.pixels.device.type == ready.labels.device.type == device.type
        assert (ready.images.pixels == step).all()
        assert ready.labels.tolist() == [step, step]


def test_a_batch_that_was_not_announced_is_taken_as_it_is(
    tensors: Callable[[int], Batch], device: torch.device
) -> None:
    ahead = ReadAhead((8, 8), (4, 4), lambda images, step: images)
    ahead.begin([tensors(1)], 1, device)
    assert ahead.take(tensors(7), 1, device).labels.tolist() == [7, 7]
    ahead.begin([tensors(2)], 2, device)
    ahead.forget()
    assert ahead.take(tensors(8), 2, device).labels.tolist() == [8, 8]
