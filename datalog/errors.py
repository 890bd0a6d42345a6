"""The root of every error that this package raises."""

from __future__ import annotations


class DatalogError(Exception):
    """Base class: bad programs, or a broken invariant of this package."""
