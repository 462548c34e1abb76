"""How far the mean gradient of each estimator is from the truth, over every possible draw.

    python benchmarks/bias.py

Enumerates all ordered draws of two and three from six and seven cells in float64, and prints the
norm of the mean gradient's error, as a share of the true gradient's norm.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from estimators import published_logit_gradient, weighted_logit_gradient
from foveate.sampling.sequential import sequential_weight
from foveate.sampling.strata import mass_outside
from foveate.sampling.unordered import murthy_weight


def every_order(attention: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """All ordered draws without replacement, and their probabilities."""
    index = torch.tensor(list(itertools.permutations(range(len(attention)), n)))
    drawn = attention[index]
    return index, (drawn / (1 - (drawn.cumsum(1) - drawn))).prod(1)


def main() -> None:
    """Print the table."""
    print("| cells | draws | attention | published code | Sequential | Unordered |")
    print("|---|---|---|---|---|---|")
    generator = torch.Generator().manual_seed(0)
    for cells, n in [(6, 2), (6, 3), (7, 2), (7, 3)]:
        logits = torch.randn(cells, dtype=torch.float64, generator=generator)
        feature = torch.randn(cells, dtype=torch.float64, generator=generator)
        for name, scale in [("flat", 0.0), ("medium", 1.0), ("peaked", 3.0)]:
            attention = (scale * logits).softmax(0)
            truth = attention * (feature - attention @ feature)
            index, probability = every_order(attention, n)
            batch = attention.expand(len(index), -1)
            gradients = [
                published_logit_gradient(attention, index, feature),
                weighted_logit_gradient(attention, index, sequential_weight(batch, index), feature),
                weighted_logit_gradient(
                    attention,
                    index,
                    murthy_weight(attention[index], mass_outside(batch, index)),
                    feature,
                ),
            ]
            errors = [((probability @ g - truth).norm() / truth.norm()).item() for g in gradients]
            columns = " | ".join([f"{errors[0]:.0%}", f"{errors[1]:.0e}", f"{errors[2]:.0e}"])
            print(f"| {cells} | {n} | {name} | {columns} |")


if __name__ == "__main__":
    main()
