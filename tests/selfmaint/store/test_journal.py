"""Journals beside views: believed if they are ours, refused if not, and what cannot be removed is said."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from selfmaint.errors import Code, InputError, SelfmaintError
from tests.command_line import run

ID = "0123456789ab"
VICTIM = {"path": "../../victim", "existed": False, "id": ID}
OURS = {"path": "v", "existed": True, "id": ID}


@pytest.fixture
def view(tmp_path: Path) -> Path:
    """A view's folder in a warehouse, beside which something lies that is none of its business."""
    view = tmp_path / "warehouse" / "views" / "v"
    for folder in (view, tmp_path / "victim", view.parent / "sibling"):
        folder.mkdir(parents=True)
        (folder / "kept").write_text("kept", encoding="utf-8")
    return view


def journal(view: Path, text: str, name: str = f".selfmaint-journal-{ID}.json") -> Path:
    file = view.parent / name
    file.write_text(text, encoding="utf-8")
    return file


def everything(folder: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def written(state: str, *moves: Any, **more: Any) -> str:
    return json.dumps({"state": state, "moves": list(moves), **more})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "[]",
        "{}",
        "null",
        "[" * 100_000,
        "\0",
        '{"state": "done", "moves": []}',
        written("done", OURS, more=1),
        written("finished", OURS),
        written("done", "v"),
        written("done", {**OURS, "existed": "yes"}),
        written("done", {**OURS, "path": None}),
        written("done", {**OURS, "id": "ba9876543210"}),
        written("done", {**OURS, "id": "/../../../victim"}),
        *(
            written(state, *moves)
            for state in ("writing", "switching", "done")
            for moves in ([VICTIM], [OURS, VICTIM], [{**VICTIM, "path": "sibling"}])
        ),
        written("done", {**OURS, "path": "v/kept"}),
        written("done", {**OURS, "path": "."}),
        written("done", {**OURS, "path": ""}),
        written("done", {**OURS, "path": "v\0"}),
    ],
)
def test_a_journal_that_is_not_ours_is_refused_and_nothing_is_touched(view: Path, text: str) -> None:
    from selfmaint.store.write import StagedWrites, recover

    journal(view, text)
    # A good one beside it is not settled either.
    journal(view, written("switching", {**OURS, "id": "a" * 12}), f".selfmaint-journal-{'a' * 12}.json")
    (view.parent / f"v.new-{ID}").mkdir()
    (view.parents[2] / f"victim.new-{ID}").mkdir()
    before = everything(view.parents[2])
    for act in (lambda: recover([view]), lambda: StagedWrites([view]).__enter__()):
        with pytest.raises(InputError) as error:
            act()
        (found,) = error.value.diagnostics
        assert found.code is Code.FOREIGN_JOURNAL
        assert ID in found.message
        assert found.hint
        assert everything(view.parents[2]) == before


@pytest.mark.parametrize("kind", ["directory", "link", "fifo", "large", "name"])
def test_a_journal_that_is_no_plain_file_is_refused(view: Path, kind: str) -> None:
    from selfmaint.store.write import recover

    place = view.parent / f".selfmaint-journal-{ID}.json"
    text = written("switching", {**OURS, "existed": False})
    match kind:
        case "directory":
            place.mkdir()
        case "link":
            place.symlink_to(journal(view.parents[2], text, "elsewhere"))
        case "fifo":
            os.mkfifo(place)
        case "large":
            place.write_text(text + " " * (5 * 2**20), encoding="utf-8")
        case _:
            journal(view, text, ".selfmaint-journal-by-hand.json")
    with pytest.raises(InputError, match="SM407"):
        recover([view])
    assert (view / "kept").is_file()


def test_the_command_refuses_a_journal_that_is_not_ours(view: Path) -> None:
    """Before Spark is started."""
    warehouse = view.parents[1]
    (warehouse / "views.dl").write_text(".decl r(a: int not null).\nv(A) :- r(A).\n", encoding="utf-8")
    file = warehouse / "w.toml"
    file.write_text('program = "views.dl"\n[views.v]\npath = "views/v"\n', encoding="utf-8")
    journal(view, written("switching", VICTIM))
    ran = run("check", str(file), "--insert", f"r={file}", "--format", "json")
    assert ran.status == 2
    assert [e["code"] for e in json.loads(ran.stderr)["errors"]] == ["SM407"]
    assert (view.parents[2] / "victim" / "kept").is_file()


def test_what_an_undone_write_leaves_is_removed(view: Path) -> None:
    """Files that a kill can leave behind: what waits for its place, and a draft of a journal."""
    from selfmaint.store.write import recover

    before = everything(view.parent)
    (view.parent / f"v.new-{ID}.part").write_text("", encoding="utf-8")
    (view.parent / f"v.new-{ID}").mkdir()
    journal(view, written("writing", OURS))
    journal(view, "", f".selfmaint-journal-{ID}.json.draft")
    kept = journal(view, "", ".selfmaint-journal-by-hand.draft")
    assert len(recover([view])) == 1
    kept.unlink()
    assert everything(view.parent) == before


def test_first_contents_that_were_only_written_are_not_taken_for_switched(view: Path) -> None:
    """The path was made by somebody else since."""
    from selfmaint.store.write import recover

    before = everything(view.parent)
    journal(view, written("writing", {**OURS, "existed": False}))
    recover([view])
    assert everything(view.parent) == before


@contextlib.contextmanager
def not_to_be_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder whose files cannot be removed: for root by a flag, where the file system has it."""
    file = next(folder.iterdir())
    if os.geteuid():
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    program = shutil.which("chattr") or "chattr"
    flagged = subprocess.run([program, "+i", str(file)], capture_output=True, check=False).returncode == 0
    with monkeypatch.context() as patched:
        if not flagged:
            patched.setattr("selfmaint.store.journal._removed", lambda path: path != folder)
        yield
    if flagged:
        subprocess.run([program, "-i", str(file)], check=True)


@pytest.mark.parametrize(("state", "beside"), [("done", "old"), ("writing", "new"), ("switching", "new")])
def test_what_cannot_be_removed_is_said_and_removed_by_a_later_run(
    view: Path, state: str, beside: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from selfmaint.store.write import StagedWrites, recover

    before = everything(view.parent)
    left = view.parent / f"v.{beside}-{ID}"
    left.mkdir()
    (left / "file").write_text("", encoding="utf-8")
    file = journal(view, written(state, OURS))
    with not_to_be_removed(left, monkeypatch):
        for _ in range(2):
            caplog.clear()
            recover([view])
            (record,) = caplog.records
            assert record.exc_info is None
            assert str(left) in record.getMessage()
            assert record.diagnostic.code is Code.LEFT_BEHIND  # type: ignore[attr-defined]
        with StagedWrites([view]):  # what is left keeps nobody from writing
            pass
    assert file.exists()
    recover([view])
    assert everything(view.parent) == before


def test_a_full_disk_leaves_no_draft(view: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from selfmaint.store.write import StagedWrites

    before = everything(view.parent)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SelfmaintError, match=r"SM405.*No space left"):
        StagedWrites([view]).__enter__()
    assert everything(view.parent) == before
