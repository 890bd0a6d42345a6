"""`selfmaint demo`: the guided tour, which is part of a checkout."""

from __future__ import annotations

import importlib.util
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from selfmaint.cli.output import Format, reporting
from selfmaint.errors import Code, input_error

_DEMO = Path(__file__).resolve().parents[2] / "examples" / "tpch" / "demo.py"


OPTIONS = ()


def demo(given: Namespace) -> int:
    """Runs the example on TPC-H data, in a checkout. Arguments go to `examples/tpch/demo.py`."""
    with reporting(Format.TABLE):
        if not _DEMO.is_file():
            raise input_error(
                Code.MISSING_CONTENTS,
                f"there is no `{_DEMO}`",
                hint="the demo is part of the project's source: run it in a checkout",
            )
        status: int = _imported(_DEMO).main(given.rest)
    return status


def _imported(path: Path) -> Any:
    """A module from a file outside the packages; what lies beside it can be imported by it."""
    spec = importlib.util.spec_from_file_location("selfmaint_demo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module
