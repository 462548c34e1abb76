"""A whole plan on tiny data: runs, tables, figures, and going on after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from foveate.datasets import Splits
from foveate.errors import DataError, InputError, RunError
from foveate.experiments import (
    PLANS,
    Cost,
    Outcome,
    Plan,
    Shape,
    Trial,
    bench_table,
    draw_bench,
    draw_figures,
    load_outcomes,
    measure_cost,
    run_plan,
    running,
    write_tables,
)
from foveate.experiments.bench import Measured
from foveate.training import Hardware, Settings, build_splits, settings_for

CPU = Hardware(accelerator="cpu", devices="1")
TINY: dict[str, Any] = {
    "images": 20,
    "epochs": 2,
    "batch_size": 10,
    "patch_size": (28, 28),
    "overview_size": (40, 40),
    "grid": (4, 4),
    "feature": "small",
}


def tiny_plan() -> Plan:
    plan = Plan("digits", "digits", reported={"ATS-2": 0.5})
    for seed in (0, 1):
        plan.add(plan.table, "ATS-2", f"ats-s{seed}", True, **TINY, n_patches=2, seed=seed)
    plan.add(plan.table, "MIL", "mil-s0", **TINY, method="mil", n_patches=2)
    plan.add(plan.table, "CNN", "cnn-s0", **TINY, method="cnn", scale=0.1)
    plan.add(plan.entropy, "λ = 1", "entropy-1", **TINY, n_patches=2, entropy=1.0)
    plan.add(plan.patches, "n = 2", "ats-s0", True, **TINY, n_patches=2, seed=0)
    plan.curves = {row: names[:1] for row, names in plan.table.items()}
    plan.compared = {"MIL": ["mil-s0"], "ATS": ["ats-s0"]}
    return plan


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduced")
    run_plan(tiny_plan(), folder, CPU, costs=False)
    return folder


def test_every_run_is_in_the_results(reproduced: Path) -> None:
    outcomes = load_outcomes(reproduced / "results.json")
    assert set(outcomes) == {"ats-s0", "ats-s1", "mil-s0", "cnn-s0", "entropy-1"}
    for outcome in outcomes.values():
        assert 0 <= outcome.test_error <= 1
        assert len(outcome.curve) == 2
        assert outcome.settings["root"] is None
    assert outcomes["ats-s0"].pointing["images"] == 4
    assert outcomes["cnn-s0"].pointing == {}
    assert [point["test/error"] for point in outcomes["ats-s0"].curve][-1] == pytest.approx(
        outcomes["ats-s0"].test_error, abs=0.3
    )
    assert "test/error" not in outcomes["ats-s1"].curve[-1]  # nobody draws it


def test_tables_have_a_line_for_each_row(reproduced: Path) -> None:
    text = write_tables(tiny_plan(), load_outcomes(reproduced / "results.json"))
    lines = [line for line in text.splitlines() if line.startswith("| ATS-2 ")]
    assert len(lines) == 2
    assert "| 2 |" in lines[0]
    assert "50.0 %" in lines[0]
    assert " ± " in lines[0]
    assert "| λ = 1 |" in text
    assert "seeds 0, 1" in text


def test_figures_are_drawn(reproduced: Path) -> None:
    drawn = draw_figures(tiny_plan(), load_outcomes(reproduced / "results.json"), reproduced)
    names = {path.name for path in drawn}
    assert names == {
        *("curves.png", "entropy.png", "patches.png", "pointing.png"),
        *("evolution.png", "attention.png"),
    }
    assert all(path.stat().st_size > 5000 for path in drawn)


def test_runs_that_are_done_are_not_made_again(
    reproduced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a run was made again")

    monkeypatch.setattr(running, "run_trial", fail)
    assert set(run_plan(tiny_plan(), reproduced, CPU, costs=False)) == set(tiny_plan().trials)


def test_results_of_other_settings_are_not_taken_for_these(reproduced: Path) -> None:
    plan = Plan("digits", "digits")
    plan.add(plan.table, "ATS-2", "ats-s0", **{**TINY, "epochs": 3}, n_patches=2, seed=0)
    with pytest.raises(InputError, match=r"ats-s0 with other settings \(epochs\)"):
        run_plan(plan, reproduced, CPU, costs=False)


def test_settings_without_a_say_may_differ(
    reproduced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a run was made again")

    plan = Plan("digits", "digits")
    plan.add(
        plan.table, "CNN", "cnn-s0", **TINY, method="cnn", scale=0.1, curiosity=0.3, jitter=0.5
    )
    monkeypatch.setattr(running, "run_trial", fail)
    assert "cnn-s0" in run_plan(plan, reproduced, CPU, costs=False)


def test_damaged_results_are_named(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"outcomes": [{"colour": "red"}]}')
    with pytest.raises(DataError, match="does not hold results"):
        load_outcomes(tmp_path / "results.json")


def test_results_are_plain_json(reproduced: Path) -> None:
    saved = json.loads((reproduced / "results.json").read_text())
    assert saved["outcomes"][0]["settings"]["dataset"] == "digits"


@pytest.mark.parametrize("name", list(PLANS))
@pytest.mark.parametrize("quick", [False, True])
def test_plans_name_runs_that_they_have(name: str, quick: bool) -> None:
    plan = PLANS[name]("somewhere", range(2), quick)
    sections = [plan.table, plan.curves, plan.entropy, plan.patches, plan.compared]
    for section in sections:
        for names in section.values():
            assert set(names) <= set(plan.trials)
    assert set(plan.compared) == {"MIL", "ATS"}
    assert all(trial.settings.root == "somewhere" for trial in plan.trials.values())


def test_a_plan_can_be_narrowed_to_some_rows() -> None:
    plan = PLANS["megapixel-mnist"]("somewhere", range(3), False)
    plan.only(["ATS-10", "U-10"])
    assert set(plan.trials) == {f"{kind}-10-s{seed}" for kind in ("ats", "u") for seed in range(3)}
    with pytest.raises(InputError, match="has no row 'ATS-9'; choose among ATS-10, U-10"):
        plan.only(["ATS-9"])


def test_a_plan_can_be_narrowed_to_what_is_made() -> None:
    plan = PLANS["megapixel-mnist"]("somewhere", range(3), False)
    plan.made(["ats-10-s0", "ats-10-s2", "u-10-s1", "something-else"])
    assert set(plan.trials) == {"ats-10-s0", "ats-10-s2", "u-10-s1"}
    assert plan.table == {"ATS-10": ["ats-10-s0", "ats-10-s2"], "U-10": ["u-10-s1"]}
    assert plan.compared == {"ATS": ["ats-10-s0"]}


def test_runs_made_at_once_come_to_the_same(reproduced: Path, tmp_path: Path) -> None:
    plan = tiny_plan()
    plan.only(["ATS-2"])
    told = []
    made = run_plan(
        plan, tmp_path, CPU, jobs=2, costs=False, tell=lambda *news: told.append(news[:2])
    )
    assert told == [(0, 2), (1, 2)]
    alone = load_outcomes(reproduced / "results.json")
    assert load_outcomes(tmp_path / "results.json").keys() == made.keys()
    for name in ("ats-s0", "ats-s1"):
        assert made[name].test_error == alone[name].test_error
        assert made[name].train_loss == pytest.approx(alone[name].train_loss, rel=1e-4)


def test_a_run_that_fails_does_not_end_the_others(
    reproduced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = load_outcomes(reproduced / "results.json")

    def run_trial(trial: Trial, *_: object) -> Outcome:
        if trial.name == "ats-s0":
            raise RuntimeError("the memory is full\nand so on")
        return known[trial.name]

    monkeypatch.setattr(running, "run_trial", run_trial)
    count = len(tiny_plan().trials)
    why = f"1 of {count} runs failed.*the first was ats-s0: RuntimeError: the memory is full "
    with pytest.raises(RunError, match=why):
        run_plan(tiny_plan(), tmp_path, CPU, costs=False)
    assert load_outcomes(tmp_path / "results.json").keys() == known.keys() - {"ats-s0"}
    assert "in run_trial" in (tmp_path / "runs" / "ats-s0" / "error.txt").read_text()


def test_what_the_user_can_mend_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_trial(*_: object) -> None:
        raise DataError("nothing is there")

    monkeypatch.setattr(running, "run_trial", run_trial)
    with pytest.raises(DataError, match="nothing is there"):
        run_plan(tiny_plan(), tmp_path, CPU, costs=False)


def test_two_unlike_runs_can_not_have_one_name() -> None:
    plan = tiny_plan()
    with pytest.raises(InputError, match="two unlike runs called cnn-s0"):
        plan.add(plan.table, "CNN", "cnn-s0", **TINY)


def test_a_step_costs_time_and_memory(device: torch.device) -> None:
    settings = settings_for("digits", **TINY, n_patches=2)
    cost = measure_cost(settings, Shape((200, 200), 1, 10, 2), device, repeat=2)
    assert cost.milliseconds > 0
    assert cost.megabytes >= 0


def test_the_benchmark_names_ratios_within_a_run(tmp_path: Path) -> None:
    lines = [
        Measured("roads", "ATS-5", 1, 1.2, "fast", Cost(2.0, 0.1, 10.0)),
        Measured("roads", "MIL", 1, 1.2, "fast", Cost(30.0, 1.0, 200.0)),
    ]
    table = bench_table(lines)
    assert "| roads | MIL | 1 | 1.2 | fast | 30.000 | 1.000 | 200.0 | 15.0x | 20.0x |" in table
    assert draw_bench(lines, tmp_path / "bench.png").stat().st_size > 5000


def test_runs_on_the_same_data_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def build(settings: Settings) -> Splits:
        made.append(settings.seed)
        return build_splits(settings)

    monkeypatch.setattr(running, "build_splits", build)
    shared = running.SharedSplits()
    own = settings_for("digits", **TINY)
    first = shared.get(own)
    assert shared.get(settings_for("digits", **TINY, method="mil")) is first
    assert shared.get(settings_for("digits", **TINY, seed=1)) is not first
    assert made == [0, 1]
