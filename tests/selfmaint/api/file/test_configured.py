"""How a command is told which Spark to use: the warehouse file, `spark-submit`; and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from datalog.copies import replace
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.platforms import platform
from selfmaint.api.platforms.platform import engines_for
from selfmaint.errors import Code, InputError
from selfmaint.store.place import LakePlace, Objects
from tests.command_line import run
from tests.conftest import require_java

ROOT = Path(__file__).resolve().parents[4]
WAREHOUSE = """
program_text = ".decl r(x: bigint not null). v(X) :- r(X)."
[views.v]
path = "v.csv"
[update]
effective = true
[engine]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "v.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "new.csv").write_text("x\n2\n", encoding="utf-8")
    return tmp_path


def written(folder: Path, engine: str) -> str:
    file = folder / "warehouse.toml"
    file.write_text(WAREHOUSE + engine, encoding="utf-8")
    return str(file)


def test_settings_by_their_dotted_names_in_any_spelling(folder: Path) -> None:
    lines = """
    spark.master = "spark://host:7077"
    spark.executor.cores = 2
    spark.eventLog.enabled = true
    spark."locality.wait" = "3s"
    spark."locality.wait.node" = "1s"
    spark.memory.fraction = 0.5
    """
    assert read_warehouse_file(written(folder, lines)).engine.spark == {
        "spark.master": "spark://host:7077",
        "spark.executor.cores": "2",
        "spark.eventLog.enabled": "true",
        "spark.locality.wait": "3s",
        "spark.locality.wait.node": "1s",
        "spark.memory.fraction": "0.5",
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('spark = "local"', "`engine.spark` is a string, not a table"),
        ('spark.jars = ["a.jar", "b.jar"]', "`spark.jars` has no single value"),
        ('kind = "duckdb"\nspark.master = "local"', "`spark.master` is a setting of the engine `spark`"),
        (
            "spark.sql.ansi.enabled = false",
            "`spark.sql.ansi.enabled` has to be `true`: SQL means something else otherwise than is read here",
        ),
    ],
)
def test_settings_that_are_none(lines: str, message: str, folder: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_warehouse_file(written(folder, lines))
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == (Code.WAREHOUSE_FILE, message)
    assert found.span is not None
    assert found.span.line == WAREHOUSE.count("\n") + lines.count("\n") + 1


def test_another_clock_than_that_of_utc_is_sparks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of an instant is another one there: DuckDB, which goes by UTC, is neither chosen nor believed."""
    monkeypatch.setattr(platform, "is_spark_active", lambda: False)
    zone = 'spark."sql.session.timeZone"'
    for clock in ("Asia/Tokyo", "+09:00"):
        file = read_warehouse_file(written(folder, f'{zone} = "{clock}"'))
        assert engines_for(file) == (EngineKind.SPARK,)
        with pytest.raises(InputError, match=f"days begin in `{re.escape(clock)}`") as refused:
            engines_for(file, EngineKind.DUCKDB)
        assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS
        objects = LakePlace(folder / "lake", objects=Objects("s3://shop/lake"))
        with pytest.raises(InputError, match="days begin in"):
            engines_for(replace(file, store=objects))
    file = read_warehouse_file(written(folder, f'{zone} = "Etc/UTC"'))
    assert engines_for(file)[0] is EngineKind.DUCKDB


def test_a_server_of_connect_is_refused_before_java_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = f"r={folder / 'new.csv'}"
    file = written(folder, 'spark.remote = "sc://host"')
    ran = run("check", file, "--insert", new, "--engine", "spark")
    assert (ran.status, "spark.remote names a server of Spark Connect" in ran.stderr) == (2, True)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    ran = run("check", written(folder, ""), "--insert", new, "--engine", "spark")
    assert (ran.status, ran.stdout) == (2, "")
    assert (
        "error[SM501]: SPARK_REMOTE names a server of Spark Connect, over which selfmaint does not run"
        in ran.stderr
    )
    assert "`spark.master` in `[engine]`" in ran.stderr
    assert run("check", written(folder, ""), "--insert", new, "--engine", "duckdb").status == 0


def test_what_is_no_session_of_its_own_is_refused() -> None:
    import selfmaint

    with pytest.raises(InputError, match=r"the session is a `builtins.object`, as of Spark Connect"):
        selfmaint.build("v(X) :- r(X).", {}, spark=object())  # type: ignore[call-overload]


JOB = """
import json, sys
from selfmaint.cli import app

status = app(sys.argv[1:])
from pyspark import SparkContext

print(json.dumps(dict(SparkContext._active_spark_context.getConf().getAll())))
sys.exit(status)
"""


JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiling well what runs once costs more than it saves."""


def test_a_job_has_the_settings_that_it_is_submitted_with(folder: Path) -> None:
    require_java()
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    submit = Path(sys.executable).with_name("spark-submit")
    options = ["--master", "local[1]", "--conf", "spark.buffer.pageSize=2m", "--driver-java-options", JAVA]
    file = written(folder, "spark.sql.shuffle.partitions = 5")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    more = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [str(submit), *options, "job.py", "check", file, "--insert", "r=new.csv", "--engine", "spark"],
        cwd=folder,
        env={**kept, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    settings = json.loads(ended.stdout.splitlines()[-1])
    wanted = {
        "spark.master": "local[1]",
        "spark.buffer.pageSize": "2m",
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
    }
    assert {name: settings[name] for name in wanted} == wanted
