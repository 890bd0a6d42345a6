"""The command line: the only place that prints or exits."""

from selfmaint.cli.app import app, main

__all__ = ["app", "main"]
