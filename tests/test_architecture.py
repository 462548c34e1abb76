"""The arrows between the rooms point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import foveate

PACKAGE = Path(foveate.__file__).parent

MAY_IMPORT = {
    "errors": set[str](),
    "kernels": set[str](),
    "extras": {"errors"},
    "types": {"errors"},
    "coordinates": {"types", "errors"},
    "sampling": {"types", "errors", "kernels"},
    "images": {"types", "errors", "extras", "kernels", "sampling", "coordinates"},
    "models": {"types", "errors", "kernels", "sampling", "coordinates", "images"},
    "datasets": {"types", "errors", "sampling", "coordinates", "images"},
    "training": {"types", "errors", "sampling", "coordinates", "images", "models", "datasets"},
    "reports": {"types", "errors", "extras", "images"},
    "experiments": {
        *("types", "errors", "kernels", "coordinates"),
        *("images", "models", "datasets", "training", "reports"),
    },
    "cli": {
        *("types", "errors", "images", "models", "datasets", "training", "reports", "experiments"),
    },
}
"""Each room, and the rooms it may import. A new room gets a line here."""

WITHIN_IMAGES = {
    "georeference": set[str](),
    "image": {"georeference"},
    "sources": set[str](),
    "formats": {"georeference", "sources"},
    "memory": {"image"},
    "files": {"georeference", "image", "sources", "formats", "memory"},
    "batches": {"image", "memory", "files"},
    "opening": {"image", "sources", "formats", "memory", "files"},
    "batching": {"opening", "batches"},
    "convert": {"sources", "formats"},
}
"""The same for what is inside images."""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path) -> set[str]:
    """Every module of foveate that a file imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name, so that the arrow can be seen"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    modules = {module_name(path) for path in PACKAGE.rglob("*.py")}
    found = set()
    for name in names:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        found |= {name} - {"", "foveate"}
    return found


def room_of(module: str) -> str:
    return module.split(".")[1]


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_room_imports_only_the_rooms_before_it(path: Path) -> None:
    room = room_of(module_name(path))
    others = {room_of(module) for module in imported_modules(path)} - {room}
    assert others <= MAY_IMPORT[room]


def test_rooms_within_images_import_only_those_before_them() -> None:
    for path in (PACKAGE / "images").rglob("*.py"):
        name = module_name(path)
        if name == "foveate.images":  # gathers them
            continue
        here = name.split(".")[2]
        inside = {module for module in imported_modules(path) if room_of(module) == "images"}
        others = {module.split(".")[2] for module in inside} - {here}
        assert others <= WITHIN_IMAGES[here], name


def test_no_module_imports_itself_in_a_circle() -> None:
    arrows = {module_name(path): imported_modules(path) for path in FILES}
    # A room's own __init__ gathers its files, and its files do not go through it.
    done: set[str] = set()
    while ready := {name for name, targets in arrows.items() if targets <= done} - done:
        done |= ready
    assert set(arrows) == done, f"in a circle: {sorted(set(arrows) - done)}"


def imports_at_the_top(path: Path) -> set[str]:
    """The packages that importing a file needs."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found - sys.stdlib_module_names - {"foveate"}


CORE = {"torch", "numpy", "jaxtyping"}
ALSO = {
    "kernels": {"triton"},
    "sampling": {"triton"},
    "models": {"triton"},
    "images": {"triton"},
    "datasets": {"PIL"},
    "training": {"lightning", "torchmetrics"},
    "reports": {"matplotlib"},
    "experiments": {"matplotlib"},
    "cli": {"rich", "typer"},
}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_room_needs_only_its_own_packages(path: Path) -> None:
    assert imports_at_the_top(path) <= CORE | ALSO.get(room_of(module_name(path)), set())


def test_only_the_kernels_need_triton() -> None:
    kernels = {module_name(path) for path in FILES if "triton" in imports_at_the_top(path)}
    assert all(name.endswith("_kernel") for name in kernels)
    for path in FILES:  # and nobody else needs them to be imported
        if module_name(path) in kernels:
            continue
        top = ast.Module(ast.parse(path.read_text()).body, [])
        for node in top.body:
            if isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                assert not (names | {node.module or ""}) & kernels


def test_importing_foveate_loads_nothing_heavy() -> None:
    heavy = {"lightning", "matplotlib", "PIL", "triton"}
    code = f"import sys, foveate; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.strip() == "[]"
