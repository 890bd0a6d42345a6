"""The README and the guide: every example in them is run, and every option and key is in them.

A page is read from the top, in a folder of its own. What a comment before a block says of it:

    <!-- file: views.dl -->      the block is that file
    <!-- prints -->              the block is what the Python before it prints
    <!-- status: 1 -->           the exit status of the block's last command, 0 if nothing is said
    <!-- not run: REASON -->     the block is no example that can be run here

A comment may hold a whole file: `<!-- file: changes/r.insert.csv`, its lines, and the comment's end. In a `console`
block each line that starts with `$ ` is a command; the lines after it are what it prints, `...` standing for any lines.
A page with `<!-- needs: spark -->` is run with a session.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from selfmaint.api.file import file_settings, places, warehouse_file
from selfmaint.cli.app import COMMANDS, imported
from tests.command_line import run

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = [ROOT / "README.md", *sorted(GUIDE.glob("*.md"))]
ON_SPARK = [page for page in PAGES if "<!-- needs: spark -->" in page.read_text(encoding="utf-8")]
PLAIN = [page for page in PAGES if page not in ON_SPARK]
HIDDEN = re.compile(r"<!-- file: (\S+)\n(.*?)-->\n", re.DOTALL)
PART = re.compile(r"^(?:<!-- (?P<said>[a-z ]+)(?:: (?P<of>[^>]*?))? -->|```(?P<language>\w+))$")
ANYTHING = "..."


@dataclass(frozen=True)
class Block:
    """A fenced block, and what is said of it."""

    language: str
    text: str
    said: dict[str, str]
    line: int


def blocks(page: str) -> Iterator[Block]:
    said: dict[str, str] = {}
    lines = page.splitlines()
    at = 0
    while at < len(lines):
        found = PART.match(lines[at])
        if found is not None and found["language"]:
            end = lines.index("```", at)
            yield Block(found["language"], "\n".join(lines[at + 1 : end]) + "\n", said, at + 1)
            at, said = end, {}
        elif found is not None:
            said[found["said"]] = found["of"] or ""
        elif lines[at].strip():
            said = {}
        at += 1


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def same(shown: list[str], printed: list[str]) -> bool:
    """Whether lines are those shown; `...` stands for any number of them."""
    if not shown:
        return not printed
    if shown[0] == ANYTHING:
        return any(same(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and same(shown[1:], printed[1:])


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def check_console(block: Block) -> None:
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    for number, command in enumerate(commands, 1):
        line, _, shown = command.partition("\n")
        name, *arguments = shlex.split(line, comments=True)
        assert name == "selfmaint", line
        ran = run(*arguments)
        wanted = int(block.said.get("status", "0")) if number == len(commands) else None
        assert ran.status == wanted or (wanted is None and ran.status != 2), (
            f"{line}\n{ran.stdout}{ran.stderr}"
        )
        if shown.strip():
            assert same(lines_of(shown), lines_of(ran.stdout + ran.stderr)), (
                f"{line}\n{ran.stdout}{ran.stderr}"
            )


def check_page(page: str) -> None:
    for name, text in HIDDEN.findall(page):
        write(name, text)
    printed, names = "", dict[str, Any]()
    for block in blocks(HIDDEN.sub("", page)):
        if "not run" in block.said:
            assert block.said["not run"], f"line {block.line} says no reason"
        elif "file" in block.said:
            write(block.said["file"], block.text)
        elif block.language == "console":
            check_console(block)
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, f"<line {block.line}>", "exec"), names)  # noqa: S102
            printed = out.getvalue()
        elif "prints" in block.said:
            assert same(lines_of(block.text), lines_of(printed)), printed
        else:
            assert block.language == "text", f"line {block.line}: nothing says how the block is run"


@pytest.mark.parametrize("path", PLAIN, ids=lambda p: p.name)
def test_the_examples_of_a_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_page(path.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", ON_SPARK, ids=lambda p: p.name)
def test_the_examples_of_a_page_on_spark(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_page(path.read_text(encoding="utf-8"))


def test_an_example_that_is_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in (
        "```console\n$ selfmaint explain SM999\n```\n",
        "```console\n$ selfmaint explain SM101\nsomething else\n```\n",
        "```python\nraise ValueError\n```\n",
        "```python\nprint(1)\n```\n<!-- prints -->\n```text\n2\n```\n",
        "```toml\nx = 1\n```\n",
        "<!-- not run -->\n```toml\nx = 1\n```\n",
    ):
        with pytest.raises((AssertionError, ValueError)):
            check_page(wrong)
    said = run("explain", "SM101").stdout.splitlines()[0]
    check_page(f"```console\n$ selfmaint explain SM101\n{said}\n...\n```\n")
    check_page("```python\nprint(1)\nprint(2)\n```\n<!-- prints -->\n```text\n...\n2\n```\n")


def test_every_page_is_named_on_the_first() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"(docs/guide/{page.name})" not in first] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_the_reference(name: str) -> None:
    page = (GUIDE / "commands.md").read_text(encoding="utf-8")
    part = page.split(f"\n## `selfmaint {name}", 1)[1].split("\n## ", 1)[0]
    shared = page.split("\n## Options that several commands have", 1)[1].split("\n## ", 1)[0]
    options = [flag for option in imported(name)[1] for flag in option.flags]
    missing = [o for o in options if o.startswith("-") and f"`{o}" not in part and f"`{o}" not in shared]
    assert missing == []


def test_every_key_of_the_warehouse_file_is_in_the_reference() -> None:
    page = (GUIDE / "warehouse-file.md").read_text(encoding="utf-8")
    keys = {
        *warehouse_file._KEYS,
        *("path", "table", "kind", "url", "url_env", "timeout_s", "source", "cost", "present", "absent"),
        *file_settings._OF_FEEDS,
        *file_settings._OF_LOGS,
        "spark.NAME",
        *places._STORE_KEYS,
        *("effective", "memory_limit", "temp_directory", "threads"),
    }
    assert {*file_settings._OF_DUCKDB} <= keys
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", page)] == []
