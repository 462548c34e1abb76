"""Runs with painted signs, from the setting to the trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image as PillowImage

from foveate.datasets import PaintedDataset
from foveate.training import Hardware, Settings, build_splits, settings_for, train


def write_roads(root: Path) -> None:
    """Five photographs of each of four classes, in German order."""
    (root / "images").mkdir()
    lines = ["path,label"]
    for i in range(20):
        PillowImage.new("RGB", (120, 90), (5 * i, 80, 60)).save(root / "images" / f"{i}.png")
        lines.append(f"images/{i}.png,{('none', '30', '50', '120')[i % 4]}")
    (root / "labels.csv").write_text("\n".join(lines) + "\n")


def road_settings(root: Path, **overrides: Any) -> Settings:
    values: dict[str, Any] = {
        "root": str(root),
        "painted": 10,
        "epochs": 1,
        "batch_size": 4,
        "n_patches": 2,
        "patch_size": (24, 24),
        "overview_size": (45, 60),
        "grid": (3, 4),
        "feature": "small",
    }
    return settings_for("gtsdb-speed-limits", **values | overrides)


def test_painted_images_join_the_training_part_alone(tmp_path: Path) -> None:
    write_roads(tmp_path)
    plain = build_splits(road_settings(tmp_path, painted=0))
    splits = build_splits(road_settings(tmp_path))
    assert isinstance(splits.train, PaintedDataset)
    assert len(splits.train) == len(plain.train) + 10
    assert torch.equal(splits.train.labels[: len(plain.train)], plain.train.labels)
    for part in ("validation", "test"):
        mine, theirs = getattr(splits, part), getattr(plain, part)
        assert [mine.name(i) for i in range(len(mine))] == [
            theirs.name(i) for i in range(len(theirs))
        ]


@pytest.mark.parametrize("method", ["ats", "uniform", "cnn", "mil"])
def test_every_method_trains_with_painted_signs(method: str, tmp_path: Path) -> None:
    write_roads(tmp_path)
    settings = road_settings(tmp_path, method=method, class_weights=True)
    hardware = Hardware(accelerator="cpu", devices="1")
    run = train(settings, tmp_path / "run", hardware, progress=False)
    assert 0 <= run.metrics["test/error"] <= 1
    counts = torch.bincount(run.splits.train.labels)
    weight = run.classifier.class_weight
    assert weight is not None
    assert torch.equal(weight.argsort(), (1 / counts).argsort()) or counts.unique().numel() < 4
    assert Settings.load(tmp_path / "run" / "settings.json").painted == 10
