"""What a terminal is told of work that takes a while."""

from __future__ import annotations

import time
from io import StringIO

import pytest
from rich.console import Console

from datalog.budget import limit
from selfmaint.cli import output

PATIENCE_S = 0.2


def said(monkeypatch: pytest.MonkeyPatch, seconds: float, *, terminal: bool = True) -> str:
    """What is printed while a search with a budget takes some time."""
    screen = StringIO()
    console = Console(file=screen, force_terminal=terminal, width=80)
    monkeypatch.setattr(output, "Console", lambda **_: console)
    monkeypatch.setattr(output, "_PATIENCE_S", PATIENCE_S)
    with output.progressing(), limit(60, "finding what `[v]` depends on"):
        time.sleep(seconds)
    return screen.getvalue()


def test_a_search_that_takes_long_is_named_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "finding what `[v]` depends on" in said(monkeypatch, 3 * PATIENCE_S)


def test_nothing_is_said_of_a_quick_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "finding" not in said(monkeypatch, 0)


def test_nothing_is_said_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, 3 * PATIENCE_S, terminal=False) == ""
