"""Every module can be imported, every name that a package offers is there, and the tests mirror the packages."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("datalog", "selfmaint")


def modules() -> list[str]:
    """The dotted names of the packages' modules; not `__main__`, which importing would run."""
    names = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] != "__main__":
                names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


@pytest.mark.parametrize("name", modules())
def test_module_is_importable_and_offers_what_it_says(name: str) -> None:
    module = importlib.import_module(name)
    offered = getattr(module, "__all__", ())
    assert [entry for entry in offered if not hasattr(module, entry)] == []
    assert len(set(offered)) == len(offered)


@pytest.mark.parametrize("package", PACKAGES)
def test_package_comes_from_this_repository(package: str) -> None:
    origin = importlib.import_module(package).__file__
    assert origin is not None, f"`{package}` has no `__init__.py`"
    assert Path(origin).is_relative_to(ROOT)


@pytest.mark.skipif(
    not any((ROOT / "selfmaint" / name).exists() for name in ("api.py", "api")),
    reason="`selfmaint.api` is not written yet",
)
def test_selfmaint_offers_its_public_surface() -> None:
    assert importlib.import_module("selfmaint").__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_with_modules_are_packages(package: str) -> None:
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [folder.relative_to(ROOT) for folder in folders if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_of_tests_are_those_of_the_package(package: str) -> None:
    mirrored = ROOT / "tests" / package
    folders = {path.parent.relative_to(mirrored) for path in mirrored.rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (ROOT / package / folder).is_dir()] == []
