"""How much of the machine's memory images may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.datasets import room, usual_room

GIB = 2**30


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A machine of 16 GiB, and where it says what a container may take; nothing at first."""
    paths = tmp_path / "memory.max", tmp_path / "limit_in_bytes"
    monkeypatch.setattr(room, "_LIMITS", paths)
    monkeypatch.setattr(room, "_machine", lambda: [16 * GIB])
    return paths


def test_it_is_a_quarter_that_processes_share(limits: tuple[Path, Path]) -> None:
    assert usual_room() == 4 * GIB
    assert usual_room(processes=4) == GIB


@pytest.mark.parametrize("which", [0, 1])
def test_a_container_has_a_quarter_of_its_own(limits: tuple[Path, Path], which: int) -> None:
    limits[which].write_text(f"{8 * GIB}\n")
    assert usual_room() == 2 * GIB


@pytest.mark.parametrize("stated", ["max\n", f"{2**63 - 4096}\n"])
def test_a_container_without_a_limit_has_the_machine_s(
    limits: tuple[Path, Path], stated: str
) -> None:
    limits[0].write_text(stated)
    assert usual_room() == 4 * GIB


def test_a_system_that_says_nothing_has_a_little(
    limits: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_machine", list)
    assert usual_room() == 2 * GIB
    assert usual_room(processes=2) == GIB


def test_this_machine_says_something() -> None:
    assert usual_room() > 0
