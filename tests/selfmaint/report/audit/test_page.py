"""The page in a real browser: it renders, its filters filter, verdicts open, and the console stays empty."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from datalog.syntax import parse_program
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.report.audit.page import audit_page
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation

ROOT = Path(__file__).resolve().parents[4]
HOSTILE = """
.decl `</script><script>console.error(1)</script>`(x: int not null, `<b>y</b>`: int not null).
.decl `s"onload="x`(y: int not null, z: string not null).
`<img src=x onerror=console.error(2)>`(X, Y, Z) :-
    `</script><script>console.error(1)</script>`(X, Y), `s"onload="x`(Y, Z), X > 3.
`&amp;`(X) :- `</script><script>console.error(1)</script>`(X, Y).
`'copy'`(Y, Z) :- `s"onload="x`(Y, Z).
"""
PROBE = """<script>
  const seen = {};
  const rows = () => Array.from(document.querySelectorAll("tr.line")).filter((r) => r.offsetParent).length;
  const press = (name) => document.querySelector(`button[data-filter=${name}]`).click();
  seen.all = rows();
  press("depends"); seen.depends = rows();
  press("never"); seen.never = rows();
  press("all");
  const find = document.getElementById("find");
  find.value = "no such name"; find.dispatchEvent(new Event("input")); seen.none = rows();
  find.value = ""; find.dispatchEvent(new Event("input")); seen.again = rows();
  const button = document.querySelector("button.verdict");
  button.focus(); seen.focused = document.activeElement === button;
  button.click();
  const opened = document.getElementById(button.getAttribute("aria-controls"));
  seen.opened = !opened.hidden && button.getAttribute("aria-expanded") === "true";
  document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
  seen.closed = opened.hidden;
  window.dispatchEvent(new Event("beforeprint"));
  seen.printed = Array.from(document.querySelectorAll("tr.more.paper")).every((row) => !row.hidden);
  seen.boxes = document.querySelectorAll("svg.drawing rect").length;
  seen.width = document.querySelector("svg.drawing").getBoundingClientRect().width;
  seen.scripts = document.scripts.length;
  const out = document.createElement("pre");
  out.id = "probe"; out.textContent = JSON.stringify(seen); document.body.append(out);
</script></body>"""


def browser() -> str:
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found, "the page is tested in a browser: run scripts/ensure_chromium.sh"
    return found


@functools.cache
def page(program: str) -> str:
    report = audit_catalog(catalog(parse_program(program)), Situation(effective=True), AuditOptions())
    return audit_page(report, "warehouse <&> 'x'")


def rendered(text: str, folder: Path) -> tuple[dict[str, Any], str]:
    """What the probe saw in the page, and what came on the console."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", PROBE), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--window-size=1200,900",
    ]
    ran = subprocess.run(
        [browser(), *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    probed = re.search(r'<pre id="probe">(.*?)</pre>', ran.stdout)
    assert probed, ran.stderr
    console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(probed.group(1))), "\n".join(console)


PROGRAMS = {"tpch": (ROOT / "examples/tpch/views.dl").read_text(encoding="utf-8"), "hostile": HOSTILE}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_works_in_a_browser(name: str, tmp_path: Path) -> None:
    seen, console = rendered(page(PROGRAMS[name]), tmp_path)
    assert console == ""
    assert seen["all"] == seen["again"] > seen["depends"] >= seen["never"]
    assert seen["none"] == 0
    assert seen["focused"]
    assert seen["opened"]
    assert seen["closed"]
    assert seen["printed"]
    assert seen["boxes"] >= 4
    assert seen["width"] > 300
    assert seen["scripts"] == 2  # the page's own and the probe


def test_it_asks_the_network_for_nothing() -> None:
    text = page(PROGRAMS["tpch"])
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://""", text)


def test_names_are_data() -> None:
    text = page(HOSTILE)
    assert "<img" not in text
    assert text.count("<script>") == 1
    assert 'data-relation="s&quot;onload=&quot;x"' in text
