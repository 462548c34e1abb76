"""Results as Markdown tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from foveate.experiments.plans import Plan, Rows
from foveate.experiments.trial import Outcome

Outcomes = dict[str, Outcome]


def write_tables(plan: Plan, outcomes: Outcomes) -> str:
    """All tables of a plan, as one Markdown text."""
    parts = [f"# {plan.title}", _about(plan, outcomes), "## Methods", methods(plan, outcomes)]
    looked = {row: names for row, names in plan.table.items() if outcomes[names[0]].pointing}
    if looked:
        parts += ["## Where they look", _POINTING, pointing(looked, outcomes)]
    if plan.entropy:
        parts += ["## Entropy regulariser", ablation(plan.entropy, outcomes)]
    if plan.patches:
        parts += ["## Number of patches", ablation(plan.patches, outcomes)]
    return "\n\n".join(parts) + "\n"


_POINTING = (
    "On the test images: the share of the attention that lies on the truth (of an even attention, "
    "in brackets), the share of the patches that are on it, the share of images in which any of "
    "them is, and in which the cell of most attention is. A patch is on the truth if it shows the "
    "centre of a box around what decides the label."
)


def _about(plan: Plan, outcomes: Outcomes) -> str:
    made = [outcomes[name] for name in plan.trials]
    machines = sorted({outcome.machine for outcome in made})
    dates = sorted({outcome.date for outcome in made})
    seeds = sorted({outcome.settings["seed"] for outcome in made})
    return (
        f"{len(made)} runs on {'; '.join(machines)}; {' to '.join({dates[0]: 0, dates[-1]: 0})}; "
        f"seeds {', '.join(map(str, seeds))}. Means ± standard errors over seeds and folds; all "
        "runs are counted, and each is in `results.json`."
    )


def methods(plan: Plan, outcomes: Outcomes) -> str:
    """The paper's table: loss, error, time and memory of each method."""
    lines = [
        _line(
            "method",
            "runs",
            "updates",
            "train loss",
            "test error",
            "paper's",
            "balanced error",
            "training",
            "ms / image",
            "MB / image",
        ),
        "|---" * 10 + "|",
    ]
    for row, names in plan.table.items():
        made = [outcomes[name] for name in names]
        cost = made[0].cost
        reported = plan.reported.get(row)
        lines.append(
            _line(
                row,
                str(len(made)),
                f"{made[0].curve[-1]['step']:.0f}",
                _mean(made, lambda o: o.train_loss, "{:.3f}"),
                _percent(made, lambda o: o.test_error),
                "" if reported is None else f"{100 * reported:.1f} %",
                _percent(made, lambda o: o.balanced_error),
                _mean(made, lambda o: o.seconds, "{:.0f}", spread=False) + " s",
                f"{cost['milliseconds']:.2f}" if cost else "",
                f"{cost['megabytes']:.1f}" if cost else "",
            )
        )
    return "\n".join(lines)


def pointing(rows: Rows, outcomes: Outcomes) -> str:
    """Where each method looks, against the truth."""
    lines = [
        _line("method", "attention on the truth", "patches on it", "images found", "pointing"),
        "|---" * 5 + "|",
    ]
    for row, names in rows.items():
        made = [outcomes[name] for name in names]
        even = statistics.mean(outcome.pointing["chance"] for outcome in made)
        lines.append(
            _line(
                row,
                _percent(made, lambda o: o.pointing["mass"]) + f" ({100 * even:.1f} %)",
                _percent(made, lambda o: o.pointing["patches"]),
                _percent(made, lambda o: o.pointing["found"]),
                _percent(made, lambda o: o.pointing["first"]),
            )
        )
    return "\n".join(lines)


def ablation(rows: Rows, outcomes: Outcomes) -> str:
    """Error, and where the model looks, as one setting changes."""
    lines = [
        _line("", "runs", "train loss", "test error", "attention entropy", "patches on the truth"),
        "|---" * 6 + "|",
    ]
    for row, names in rows.items():
        made = [outcomes[name] for name in names]
        on_truth = [o for o in made if o.pointing]
        lines.append(
            _line(
                row,
                str(len(made)),
                _mean(made, lambda o: o.train_loss, "{:.3f}"),
                _percent(made, lambda o: o.test_error),
                _mean(made, lambda o: o.curve[-1].get("train/entropy", math.nan), "{:.2f}"),
                _percent(on_truth, lambda o: o.pointing["patches"]) if on_truth else "",
            )
        )
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


Reading = Callable[[Outcome], float]


def _mean(made: Sequence[Outcome], value: Reading, pattern: str, spread: bool = True) -> str:
    values = [value(outcome) for outcome in made]
    text = pattern.format(statistics.mean(values))
    if not spread or len(values) < 2:
        return text
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{text} ± {pattern.format(error)}"


def _percent(made: Sequence[Outcome], value: Reading) -> str:
    return _mean(made, lambda outcome: 100 * value(outcome), "{:.1f}") + " %"
