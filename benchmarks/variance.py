"""The mean squared error of each sampler's value and gradient, relative to independent draws.

    python benchmarks/variance.py [--json FILE]

A map of 25x40 cells, 10 draws, features of norm 1. Each entry is the mean over seeds of a sampler's
error over that of Replacement, and its standard deviation over the seeds; a seed makes its own
attention, features and draws. The value is z, the gradient that of one coordinate of z in the
logits. "Row by row" is Systematic without its curve. Settings:

    flat, medium, peaked   random logits of standard deviation 0, 3, 6; features unrelated
    smooth                 flat attention, features that vary smoothly over the image
    blob                   a bump of attention, over features that vary smoothly
    adverse                flat attention, features that repeat with the strata of Systematic
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import foveate as fv
from estimators import published_logit_gradient, weighted_logit_gradient
from foveate.sampling.curve import curve_order

ROWS, COLUMNS, N, DRAWS, SEEDS, LENGTH = 25, 40, 10, 4000, 8, 16
K = ROWS * COLUMNS
Setting = Callable[[torch.Generator], tuple[Tensor, Tensor]]


def random_map(scale: float) -> Setting:
    """Random logits, and features that know nothing of them."""

    def make(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        logits = scale * torch.randn(K, dtype=torch.float64, generator=generator)
        return logits, torch.randn(K, LENGTH, dtype=torch.float64, generator=generator)

    return make


def smooth(width: float) -> Setting:
    """A bump of attention of this width, over features that vary slowly."""

    def make(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows, columns = (torch.arange(side, dtype=torch.float64) / side for side in (ROWS, COLUMNS))
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        centre = 0.3 + 0.4 * torch.rand(2, dtype=torch.float64, generator=generator)
        logits = -((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / (2 * width**2)
        waves = 3 * torch.randn(LENGTH, 3, dtype=torch.float64, generator=generator)
        features = torch.sin(y[..., None] * waves[:, 0] + x[..., None] * waves[:, 1] + waves[:, 2])
        return logits.flatten(), features.flatten(0, 1)

    return make


def adverse(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """What Systematic can not do: all its strata hold the same features in the same order."""
    period = torch.randn(K // N, LENGTH, dtype=torch.float64, generator=generator)
    features = torch.empty(K, LENGTH, dtype=torch.float64)
    features[curve_order((ROWS, COLUMNS), torch.device("cpu"))] = period.repeat(N, 1)
    return torch.zeros(K, dtype=torch.float64), features


SETTINGS: dict[str, Setting] = {
    "flat": random_map(0.0),
    "medium": random_map(3.0),
    "peaked": random_map(6.0),
    "smooth": smooth(width=1e6),
    "blob": smooth(width=0.15),
    "adverse": adverse,
}

ESTIMATORS: dict[str, tuple[fv.Sampler, tuple[int, ...]]] = {
    "Systematic": (fv.Systematic(), (ROWS, COLUMNS)),
    "row by row": (fv.Systematic(), (K,)),
    "Unordered": (fv.Unordered(), (ROWS, COLUMNS)),
    "Sequential": (fv.Sequential(), (ROWS, COLUMNS)),
    "Replacement": (fv.Replacement(), (ROWS, COLUMNS)),
}


def mean_squared_errors(setting: Setting, seed: int) -> dict[str, tuple[float, float]]:
    """For each estimator, the error of its value and of its gradient."""
    generator = torch.Generator().manual_seed(seed)
    logits, features = setting(generator)
    features = features / features.norm(dim=-1, keepdim=True)
    attention = logits.softmax(0)
    value = attention @ features
    gradient = attention * (features[:, 0] - value[0])
    errors = {}
    for name, (sampler, cells) in ESTIMATORS.items():
        draw = sampler.draw(logits.log_softmax(0).view(cells).expand(DRAWS, *cells), N, generator)
        values = (draw.weight[..., None] * features[draw.index]).sum(1)
        gradients = weighted_logit_gradient(attention, draw.index, draw.weight, features[:, 0])
        value_error = (values - value).square().sum(-1).mean().item()
        gradient_error = (gradients - gradient).square().sum(-1).mean().item()
        errors[name] = (value_error, gradient_error)
        if isinstance(sampler, fv.Sequential):
            published = published_logit_gradient(attention, draw.index, features[:, 0])
            gradient_error = (published - gradient).square().sum(-1).mean().item()
            errors["published code"] = (value_error, gradient_error)
    return errors


def broken_order(ratios: dict[str, list[tuple[float, float]]], column: int) -> list[str]:
    """The neighbours in the expected order that stand the other way round, beyond chance."""
    broken = []
    expected = ["Systematic", "Unordered", "Sequential", "Replacement"]
    for better, worse in itertools.pairwise(expected):
        gaps = [a[column] - b[column] for a, b in zip(ratios[better], ratios[worse], strict=True)]
        if statistics.mean(gaps) > 2 * statistics.stdev(gaps) / len(gaps) ** 0.5:
            broken.append(f"{worse} is below {better}")
    return broken


def main() -> None:
    """Print a table for the value, one for the gradient, and where the expected order holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()

    ratios: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, setting in SETTINGS.items():
        ratios[name] = {}
        for seed in range(SEEDS):
            errors = mean_squared_errors(setting, seed)
            base = errors["Replacement"]
            for estimator, (value, gradient) in errors.items():
                pair = (value / base[0], gradient / base[1])
                ratios[name].setdefault(estimator, []).append(pair)

    for column, title in enumerate(["value", "gradient"]):
        print(f"\nMean squared error of the {title}, Replacement = 1\n")
        print(f"| | {' | '.join(SETTINGS)} |")
        print("|---" * (len(SETTINGS) + 1) + "|")
        for estimator in [*ESTIMATORS, "published code"]:
            cells = []
            for name in SETTINGS:
                series = [pair[column] for pair in ratios[name][estimator]]
                cells.append(f"{statistics.mean(series):.3f} ± {statistics.stdev(series):.3f}")
            print(f"| {estimator} | {' | '.join(cells)} |")
        print("\nSystematic <= Unordered <= Sequential <= Replacement, to two standard errors:\n")
        for name in SETTINGS:
            broken = broken_order(ratios[name], column)
            print(f"- {name}: {'holds' if not broken else 'fails, ' + ', '.join(broken)}")

    if args.json:
        args.json.write_text(json.dumps(ratios, indent=1))


if __name__ == "__main__":
    main()
