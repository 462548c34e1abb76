"""Checks every shape written in a signature of foveate while the tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import settings

if not os.environ.get("FOVEATE_UNCHECKED"):  # see tests/models/test_compiled.py
    jaxtyping.install_import_hook("foveate", "beartype.beartype")

# Tests are repeatable, and none of them times anything.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """Turns the shape checks off, to see our own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
