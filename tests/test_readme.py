from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    lines = [line for line in example.splitlines() if line and not line.startswith("import")]
    assert len(lines) <= 16
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, README, "exec"), {})
    assert printed.getvalue().count("[") == 11  # ten patches


def test_the_commands_exist() -> None:
    makefile = README.with_name("Makefile").read_text()
    commands = re.findall(r"`?make ([a-z-]+)", README.read_text())
    assert {"test", "example"} <= set(commands)
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
