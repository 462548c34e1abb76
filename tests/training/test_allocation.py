"""What a step frees is there for the next."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from foveate.training import allocation

PAGE_FAULTS = """
import resource, runpy, sys
import numpy as np

keep_freed_memory = runpy.run_path(sys.argv[1])["keep_freed_memory"]
assert keep_freed_memory() is (sys.argv[2] == "kept")

def step():
    maps = [np.ones(2**20) for _ in range(6)]  # 8 MB each

for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(expected: str, **environment: str) -> int:
    inherited = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    command = [sys.executable, "-c", PAGE_FAULTS, allocation.__file__, expected]
    return int(subprocess.check_output(command, env=inherited | environment, text=True))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_memory_that_is_freed_is_used_again() -> None:
    given_back = faults("as it was", MALLOC_TRIM_THRESHOLD_="0", MALLOC_MMAP_THRESHOLD_="65536")
    assert given_back > 1000
    assert faults("kept") < given_back / 10


def test_what_somebody_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=0")
    assert not allocation.keep_freed_memory()
