"""What runs came to, in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foveate.errors import DataError
from foveate.experiments.trial import Outcome

RESULTS = "results.json"


def load_outcomes(path: Path) -> dict[str, Outcome]:
    """What was saved; nothing where there is no file.

    Raises:
        DataError: where the file is damaged.
    """
    if not path.is_file():
        return {}
    try:
        saved: list[dict[str, Any]] = json.loads(path.read_text())["outcomes"]
        return {values["name"]: Outcome(**values) for values in saved}
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path} does not hold results ({type(error).__name__}); move it away, or choose "
            "another --out"
        ) from error


def save_outcomes(outcomes: dict[str, Outcome], path: Path) -> None:
    """Write results so that an interruption leaves the old ones or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"outcomes": [outcome.as_dict() for outcome in outcomes.values()]}
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(values, indent=1) + "\n")
    partial.replace(path)
