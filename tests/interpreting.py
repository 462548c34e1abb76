"""Tests of kernels in Triton's interpreter, which it must be told of before it is imported."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs triton: pip install -e '.[dev]'"
)


def run_interpreted(tests: Path) -> None:
    """Run a file of tests in a process whose kernels are interpreted on the CPU."""
    run_apart(tests, interpreted=True)


def run_apart(tests: Path, interpreted: bool) -> None:
    """Run a file of tests in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        env=os.environ | {"TRITON_INTERPRET": "1" if interpreted else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
