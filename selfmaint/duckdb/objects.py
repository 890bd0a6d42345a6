"""Object storage that speaks the protocol of S3, where a lake may have its files."""

from __future__ import annotations

import os

import duckdb

from datalog.sql.duckdb.texts import escaped
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import STORAGE
from selfmaint.duckdb.loading import extension_file, load
from selfmaint.duckdb.store import literal
from selfmaint.errors import Code, first_line, input_error
from selfmaint.store.place import LakePlace

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_CREDENTIALS = (
    "name them as for AWS's own programs: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or a profile"
)


def reach(database: Database, place: LakePlace) -> None:
    """Has a database reach the object storage of a lake, if it has one; who may, says what AWS's programs go by.

    Raises:
        InputError: SM408 an extension is missing, or there are no credentials.
    """
    if place.objects is None:
        return
    given = place.objects.endpoint or next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
    options = {"SCOPE": literal(place.objects.url), "REFRESH": "auto"}
    if given is not None:
        scheme, _, address = given.rpartition("://")
        options["ENDPOINT"] = literal(address.rstrip("/"))
        options |= {"URL_STYLE": "'path'", "USE_SSL": str(scheme != "http").lower()}
    said = ", ".join(f"{name} {value}" for name, value in options.items())
    try:
        for extension in ("httpfs", "aws"):
            load(database.run, extension_file(extension))
        database.run(
            f"CREATE OR REPLACE TEMPORARY SECRET selfmaint_objects (TYPE s3, PROVIDER credential_chain, {said})"
        )
    except duckdb.Error as failure:
        message = f"there are no credentials for `{place.objects.url}`: {first_line(failure)}"
        raise input_error(Code.LAKE, message, _CREDENTIALS) from failure


def require_none(database: Database, place: LakePlace) -> bool:
    """Refuses to make a lake among other objects; whether those that are there are of one that died being made.

    Raises:
        InputError: SM405.
    """
    if place.objects is None:
        return False
    was_begun = place.begun.is_file() and place.begun.read_text(encoding="utf-8") == place.objects.url
    try:
        found = database.run("SELECT 1 FROM glob(?) LIMIT 1", [f"{escaped(place.files)}**"])
    except duckdb.Error as failure:
        message = f"`{place.objects.url}` cannot be looked into: {first_line(failure)}"
        raise input_error(Code.WRITE_FAILED, message, STORAGE, "nothing was written") from failure
    if found and not was_begun:
        message = f"there is something at `{place.objects.url}` already"
        hint = "give the lake a folder of its own: what is no part of it is removed when it is compacted"
        raise input_error(Code.WRITE_FAILED, message, hint, "nothing was written")
    place.begun.write_text(place.objects.url, encoding="utf-8")
    return was_begun
