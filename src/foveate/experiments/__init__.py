"""The paper's tables and figures, and what a training step costs."""

from foveate.experiments.bench import bench_table, draw_bench, run_bench
from foveate.experiments.cost import Cost, Options, Shape, measure_cost
from foveate.experiments.figures import draw_figures
from foveate.experiments.plans import PLANS, Plan
from foveate.experiments.pointing import Pointing, measure_pointing
from foveate.experiments.results import RESULTS, load_outcomes
from foveate.experiments.running import (
    describe_machine,
    run_plan,
    run_trial,
)
from foveate.experiments.tables import write_tables
from foveate.experiments.trial import Outcome, Trial

__all__ = [
    "PLANS",
    "RESULTS",
    "Cost",
    "Options",
    "Outcome",
    "Plan",
    "Pointing",
    "Shape",
    "Trial",
    "bench_table",
    "describe_machine",
    "draw_bench",
    "draw_figures",
    "load_outcomes",
    "measure_cost",
    "measure_pointing",
    "run_bench",
    "run_plan",
    "run_trial",
    "write_tables",
]
