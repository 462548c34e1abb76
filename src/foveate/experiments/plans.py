"""What the paper's tables and figures need: which runs, and which rows they fill.

A plan names every run once. Its sections say which runs make up each row: runs of one row differ in
their seed or fold only, and a row's figures are their mean and standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from foveate.errors import InputError
from foveate.experiments.trial import Trial
from foveate.training import settings_for

Rows = dict[str, list[str]]
"""The names of the runs that make up each row."""


@dataclass
class Plan:
    """A set of runs and what they are for.

    Attributes:
        name: the data set's.
        title: what it reproduces.
        trials: the runs by name.
        table: rows of the paper's table.
        curves: rows whose loss and error are drawn against time.
        entropy: rows of the ablation of the entropy regulariser.
        patches: rows of the ablation of the number of patches.
        compared: rows whose attention is drawn beside the truth.
        reported: the paper's own test errors, by row.
    """

    name: str
    title: str
    trials: dict[str, Trial] = field(default_factory=dict)
    table: Rows = field(default_factory=dict)
    curves: Rows = field(default_factory=dict)
    entropy: Rows = field(default_factory=dict)
    patches: Rows = field(default_factory=dict)
    compared: Rows = field(default_factory=dict)
    reported: dict[str, float] = field(default_factory=dict)

    def add(
        self, rows: Rows, row: str, name: str, snapshots: bool = False, **settings: Any
    ) -> None:
        """Add a run to a row; a run that is there already is not made twice."""
        made = Trial(name, settings_for(self.name, **settings), snapshots)
        known = self.trials.setdefault(name, made)
        if known.settings != made.settings:
            raise InputError(f"the plan {self.name} has two unlike runs called {name}")
        rows.setdefault(row, []).append(name)

    @property
    def sections(self) -> tuple[Rows, ...]:
        """All that runs are for."""
        return self.table, self.curves, self.entropy, self.patches, self.compared

    @property
    def drawn(self) -> tuple[Rows, ...]:
        """Those whose first runs are drawn against time."""
        return self.curves, self.entropy, self.patches

    def only(self, rows: Iterable[str]) -> None:
        """Leave out all rows but these, and the runs that nobody needs then.

        Raises:
            InputError: for a row that there is none of.
        """
        wanted = set(rows)
        known = {row for section in self.sections for row in section}
        if wanted - known:
            raise InputError(
                f"the plan {self.name} has no row {min(wanted - known)!r}; "
                f"choose among {', '.join(sorted(known))}"
            )
        for section in self.sections:
            for row in set(section) - wanted:
                del section[row]
        needed = {name for rows in self.sections for names in rows.values() for name in names}
        self.trials = {name: trial for name, trial in self.trials.items() if name in needed}

    def made(self, names: Iterable[str]) -> None:
        """Leave out all runs but these, which are made, and the rows that have none of them."""
        there = set(names)
        self.trials = {name: trial for name, trial in self.trials.items() if name in there}
        for section in self.sections:
            for row, needed in list(section.items()):
                section[row] = [name for name in needed if name in there]
                if not section[row]:
                    del section[row]


Options = dict[str, Any]
ENTROPIES = (0.0, 0.01, 0.1, 1.0)
PATCHES = (1, 3, 6, 12)


def plan_megapixel_mnist(root: str | None, seeds: Iterable[int], quick: bool) -> Plan:
    """Figures of Megapixel MNIST: curves for 5 to 100 patches and a CNN; both ablations."""
    plan = Plan("megapixel-mnist", "Megapixel MNIST")
    plan.reported = {"ATS-5": 0.20, "CNN": 0.40}
    same: Options = {"root": root}
    counts = [5, 10, 25, 50, 100]
    if quick:
        same |= {"images": 120, "epochs": 2, "feature": "small", "batch_size": 8}
        counts = [5, 10]
    for seed in seeds:
        for n in counts:
            own = same | {"n_patches": n, "seed": seed}
            plan.add(plan.curves, f"ATS-{n}", f"ats-{n}-s{seed}", n == 10, **own)
            plan.add(plan.table, f"ATS-{n}", f"ats-{n}-s{seed}", **own)
        paper = same | {"n_patches": 10, "seed": seed, "feature": "lenet", "attention": "conv"}
        plan.add(plan.table, "ATS-10, the paper's networks", f"paper-10-s{seed}", **paper)
        blind = same | {"method": "uniform", "n_patches": 10, "seed": seed}
        plan.add(plan.table, "U-10", f"u-10-s{seed}", **blind)
        cnn = same | {"method": "cnn", "seed": seed, "scale": 0.1 if quick else 1.0}
        cnn |= {} if quick else {"epochs": 4, "learning_rate": 3e-3}
        plan.add(plan.curves, "CNN", f"cnn-s{seed}", **cnn)
        plan.add(plan.table, "CNN", f"cnn-s{seed}", **cnn)
    for weight in ENTROPIES:
        own = same | {"n_patches": 10, "entropy": weight}
        plan.add(plan.entropy, f"λ = {weight:g}", f"entropy-{weight:g}-s0", **own)
    for n in PATCHES:
        plan.add(plan.patches, f"n = {n}", f"ats-{n}-s0", **same, n_patches=n)
    mil = same | {"method": "mil", "seed": 0}
    mil |= {"grid": (12, 12)} if quick else {"epochs": 4, "learning_rate": 3e-3}
    plan.add(plan.compared, "MIL", "mil-s0", **mil)
    plan.add(plan.table, "MIL", "mil-s0", **mil)
    plan.compared["ATS"] = ["ats-10-s0"]
    return plan


def plan_colon_cancer(root: str | None, seeds: Iterable[int], quick: bool) -> Plan:
    """The paper's Table 1: ten folds of the colon cancer images."""
    plan = Plan("colon-cancer", "colon cancer (Table 1)")
    plan.reported = {"ATS-10": 0.093}
    same: Options = {"root": root}
    folds = range(1) if quick else range(10)
    if quick:
        same |= {"epochs": 2, "passes": 1}
    # Every 20 pixels a patch of 27x27; and a fifth of the updates, which still take twice the time.
    mil: Options = {"method": "mil", "patch_size": (27, 27), "grid": (25, 25), "passes": 5}
    mil |= {"grid": (12, 12), "passes": 1} if quick else {}
    kinds: dict[str, Options] = {
        "U-10": {"method": "uniform", "n_patches": 10},
        "U-50": {"method": "uniform", "n_patches": 50},
        "CNN, scale 0.5": {"method": "cnn", "scale": 0.5},
        "CNN, scale 1": {"method": "cnn", "scale": 1.0},
        "MIL": mil,
        "gated MIL": mil | {"gated": True},
        "ATS-10": {"n_patches": 10},
        "ATS-50": {"n_patches": 50},
    }
    for seed in seeds:
        for fold in folds:
            for row, kind in kinds.items():
                name = f"{row.replace(', scale ', '-').replace(' ', '-').lower()}-s{seed}-f{fold}"
                own = same | kind | {"seed": seed, "fold": fold}
                plan.add(plan.table, row, name, row == "ATS-10" and fold == 0, **own)
    plan.curves = {row: names[:1] for row, names in plan.table.items()}
    plan.compared = {"MIL": plan.table["MIL"][:1], "ATS": plan.table["ATS-10"][:1]}
    return plan


def plan_speed_limits(
    root: str | None, seeds: Iterable[int], quick: bool, name: str = "speed-limits"
) -> Plan:
    """The paper's Table 2: speed limits in photographs of roads."""
    plan = Plan(name, "speed limits (Table 2)")
    same: Options = {"root": root}
    german = name == "gtsdb-speed-limits"
    if quick:
        same |= {"images": 40, "epochs": 2, "passes": 1, "batch_size": 8}
        same |= {"painted": 40} if german else {}
    # A fifth of the updates: they take longer than all of the others' even so.
    fewer: Options = {} if quick else {"epochs": settings_for(name).epochs // 5}
    kinds: dict[str, Options] = {
        "U-5": {"method": "uniform", "n_patches": 5},
        "U-10": {"method": "uniform", "n_patches": 10},
        "CNN, scale 0.3": {"method": "cnn", "scale": 0.3},
        "CNN, scale 0.5": {"method": "cnn", "scale": 0.5},
        "CNN, scale 1": {"method": "cnn", "scale": 1.0} | fewer,
        "MIL": {"method": "mil"} | fewer | ({"grid": (4, 6)} if quick else {}),
        "ATS-5": {"n_patches": 5},
        "ATS-10": {"n_patches": 10},
    }
    if german:
        kinds["ATS-10, no guidance"] = {"n_patches": 10, "guidance": 0.0}
        kinds["ATS-10, no painted signs"] = {"n_patches": 10, "painted": 0, "passes": 10}
    if quick:
        kinds = {row: kinds[row] for row in ["U-5", "CNN, scale 0.3", "MIL", "ATS-5"]}
    for seed in seeds:
        for row, kind in kinds.items():
            trial = row.replace(", scale ", "-").replace(", ", "-").replace(" ", "-").lower()
            trial += f"-s{seed}"
            plan.add(plan.table, row, trial, row == "ATS-5", **same, **kind, seed=seed)
    for weight in ENTROPIES:
        own = same | {"entropy": weight, "n_patches": 5}
        plan.add(plan.entropy, f"λ = {weight:g}", f"entropy-{weight:g}-s0", **own)
    for n in PATCHES:
        plan.add(plan.patches, f"n = {n}", f"ats-{n}-s0", **same, n_patches=n)
    plan.curves = {row: names[:1] for row, names in plan.table.items()}
    plan.compared = {"MIL": plan.table["MIL"][:1], "ATS": plan.table["ATS-5"][:1]}
    return plan


def plan_gtsdb(root: str | None, seeds: Iterable[int], quick: bool) -> Plan:
    """The same table on the German roads, for want of the Swedish ones."""
    plan = plan_speed_limits(root, seeds, quick, "gtsdb-speed-limits")
    plan.title = "speed limits on German roads (for Table 2)"
    return plan


PLANS: dict[str, Callable[[str | None, Iterable[int], bool], Plan]] = {
    "megapixel-mnist": plan_megapixel_mnist,
    "colon-cancer": plan_colon_cancer,
    "speed-limits": plan_speed_limits,
    "gtsdb-speed-limits": plan_gtsdb,
}
