"""Passwords in connection strings: found, so that they are never stored or shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

_KEY = re.compile(r"(?:^|\s)\s*(?:ssl)?password\s*=\s*[^\s]", re.IGNORECASE)
_ENTRY = re.compile(
    r"""((?:^|[{,])\s*["']?(?:url|\w*pass?w\w*|pwd|\w*secret\w*|\w*token\w*)["']?\s*=\s*)(["'])(.*?)(?=\2|$)""",
    re.MULTILINE,
)
"""The value of an entry of a TOML file that may hold a secret, under whatever name."""
_SHOWN = re.compile(r"""(://[^\s:/@"']*:|password\s*=\s*["']?)([^\s@"'&]+)""", re.IGNORECASE)


def has_password(url: str) -> bool:
    """Whether a PostgreSQL URL or connection string holds a password.

    >>> has_password("postgresql://me:secret@host/db"), has_password("host=h password=secret dbname=d")
    (True, True)
    >>> has_password("postgresql://me@host/db"), has_password("host=h dbname=d")
    (False, False)
    """
    try:
        parts = urlsplit(url)
        if parts.password is not None:
            return True
        query = parts.query
    except ValueError:
        return True
    return any(key.lower() in ("password", "sslpassword") for key, _ in parse_qsl(query)) or bool(
        _KEY.search(url)
    )


def masked(text: str) -> str:
    """The text with what looks like a password starred out, every character in its place.

    >>> masked('at "postgresql://me:secret@host/d"'), masked("password=x y")
    ('at "postgresql://me:******@host/d"', 'password=* y')
    >>> masked('url = "host=h"  # of ops'), masked("pasword = 'x'")
    ('url = "******"  # of ops', "pasword = '*'")
    """
    whole = _ENTRY.sub(lambda found: found[1] + found[2] + "*" * len(found[3]), text)
    return _SHOWN.sub(lambda found: found[1] + "*" * len(found[2]), whole)
