"""The TPC-H example through a cluster: a standalone master and two workers, all of them processes of their own.

The lake's catalog is in PostgreSQL and its files are in a shared folder. Nothing else is: what the executors see in the
place of the command's TMPDIR is another, empty folder, and they have no Python. Oracle: the views' SQL over the base
relations after the update, by plain DuckDB.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow.parquet as pq
import pyspark
import pytest
from psycopg.conninfo import make_conninfo

from selfmaint.duckdb.loading import extension_file
from tests.command_line import run
from tests.conftest import require_java

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "tpch"
SPARK = Path(pyspark.__file__).parent
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
RELATIONS = ("region", "nation", "customer", "supplier", "part", "orders", "lineitem")
WORKERS = 2


# ------------------------------------------------------------------------------------------------ the cluster


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: its URL.
        ui: that of the master's page.
    """

    master: str
    ui: str

    def state(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.ui}/json/", timeout=10) as answer:  # noqa: S310 - our own server
            found: dict[str, Any] = json.load(answer)
        return found

    def workers(self) -> int | None:
        try:
            return int(self.state()["aliveworkers"])
        except (OSError, ValueError):  # it does not answer yet, or not with its page
            return None


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def without(hidden: Path) -> list[str]:
    """Put before a command that is to see an empty folder in another's place; nothing where that is not allowed."""
    mount = 'mount -t tmpfs none "$0" && exec "$@"'
    mounting = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(hidden)]
    if shutil.which("unshare") is None:
        return []
    return (
        mounting
        if subprocess.run([*mounting, "true"], capture_output=True, check=False).returncode == 0
        else []
    )


def apart(**more: str) -> dict[str, str]:
    """An environment with nothing of a session that other tests of this process use, and with no Python for Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": "/there/is/no/python", "PYTHONPATH": str(ROOT)}
    return {**kept, **local, **more}


@contextlib.contextmanager
def cluster(folder: Path, hidden: Path) -> Iterator[Cluster]:
    """A master and its workers on the loopback address; a worker, and its executors, do not see what is in `hidden`."""
    environment = apart(SPARK_HOME=str(SPARK), SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=JAVA)
    here, port, page = ["--host", "127.0.0.1"], free_port(), free_port()
    made = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}")
    with contextlib.ExitStack() as running, (folder / "cluster.log").open("ab") as log:

        def started(before: list[str], role: str, *arguments: str) -> None:
            command = [
                *before,
                str(SPARK / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{role}",
                *here,
                *arguments,
            ]
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            running.callback(process.wait)
            running.callback(process.terminate)

        started([], "master.Master", "--port", str(port), "--webui-port", str(page))
        wait_for(lambda: made.workers() == 0)  # a worker that is too early waits long
        size = ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
        for number in range(WORKERS):
            started(
                without(hidden),
                "worker.Worker",
                *size,
                "--work-dir",
                str(folder / f"worker{number}"),
                made.master,
            )
        wait_for(lambda: made.workers() == WORKERS)
        yield made


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the cluster does not come up"
        time.sleep(0.1)


# ----------------------------------------------------------------------------------------------- the warehouse


@pytest.fixture
def urls(postgres: str) -> Iterator[dict[str, str]]:
    """Two databases: the operational one, and that of the lake's catalog."""
    names = {
        variable: f"{variable.lower()}_{random.Random().randrange(10**12)}"
        for variable in ("TPCH_URL", "LAKE_URL")
    }
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name in names.values():
            connection.execute(f"create database {name}")
        yield {variable: make_conninfo(postgres, dbname=name) for variable, name in names.items()}
        for name in names.values():
            connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any, Any]]:
    """The example's modules."""
    monkeypatch.syspath_prepend(EXAMPLE)
    import contents
    import data
    import database

    yield data, database, contents
    for name in ("contents", "data", "database"):
        sys.modules.pop(name, None)


SETTINGS = """
[store]
kind = "lake"
path = "shared/lake"
catalog_url_env = "LAKE_URL"
schema = "tpch"
[engine]
spark.master = "{master}"
spark.driver.host = "127.0.0.1"
spark.driver.bindAddress = "127.0.0.1"
spark.driver.memory = "1g"
spark.driver.extraJavaOptions = "{java}"
spark.executor.extraJavaOptions = "{java}"
spark.executor.memory = "512m"
spark.sql.shuffle.partitions = 2
spark.sql.codegen.wholeStage = false
spark.sql.codegen.factoryMode = "NO_CODEGEN"
spark.eventLog.enabled = true
spark.eventLog.compress = false
spark.eventLog.dir = "{events}"
"""


def warehouse_file(folder: Path, master: str) -> str:
    """The example's, with a lake in the place of the views' folders; the rules beside it."""
    lines = (EXAMPLE / "warehouse.toml").read_text(encoding="utf-8").split("[sources.ops]")
    kept = f'program = "views.dl"\n[sources.ops]{lines[1]}'
    more = SETTINGS.format(master=master, java=JAVA, events=(folder / "events").as_uri())
    (folder / "warehouse.toml").write_text(kept + more, encoding="utf-8")
    shutil.copy(EXAMPLE / "views.dl", folder)
    return str(folder / "warehouse.toml")


def expected(base: Path, update: Any, statements: dict[str, str]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The views after the update."""
    with duckdb.connect() as connection:
        for name in RELATIONS:
            stored = f"FROM '{base / name}.parquet'"
            empty = pq.read_schema(base / f"{name}.parquet").empty_table()
            connection.register("gone", update.deleted.get(name, empty))
            connection.register("new", update.inserted.get(name, empty))
            connection.execute(f"CREATE TABLE {name} AS ({stored} EXCEPT ALL FROM gone) UNION ALL FROM new")
        return {name: Counter(connection.execute(text).fetchall()) for name, text in statements.items()}


def stored(url: str, names: list[str]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What a reader sees who has nothing but DuckDB."""
    with duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"}) as connection:
        for name in ("ducklake", "postgres_scanner"):
            connection.execute(f"LOAD '{extension_file(name)}'")
        connection.execute(f"ATTACH 'ducklake:postgres:{url}' AS l (META_SCHEMA 'tpch')")
        return {name: Counter(connection.execute(f'FROM l."{name}"').fetchall()) for name in names}


def tasks_of(events: list[dict[str, Any]]) -> set[str]:
    """The executors that ended tasks well."""
    ended = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    return {e["Task Info"]["Executor ID"] for e in ended if e["Task End Reason"]["Reason"] == "Success"}


def test_a_cluster_follows_the_example(
    urls: dict[str, str], example: tuple[Any, Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_java()
    data, database, contents = example
    for variable, url in urls.items():
        monkeypatch.setenv(variable, url)
    mine, base = tmp_path / "mine", tmp_path / "base"
    for folder in (mine, tmp_path / "shared", tmp_path / "events"):
        folder.mkdir()
    with cluster(tmp_path, mine) as running:
        file = warehouse_file(tmp_path, running.master)
        data.generate(0.001, base)
        update = data.refresh(base, 4, movers=2, part=data.add_part(base))
        database.load(urls["TPCH_URL"], base)
        contents.store(base, tmp_path / "views")
        assert run("init", file, "--from", str(tmp_path / "views"), "--engine", "duckdb").status == 0
        data.write_update(update, tmp_path / "update")
        database.apply(urls["TPCH_URL"], update)
        maintain = ["maintain", file, "--update", str(tmp_path / "update"), "--engine"]
        command = [sys.executable, "-m", "selfmaint", *maintain, "spark", "--format", "json"]
        ended = subprocess.run(
            command, env=apart(TMPDIR=str(mine)), cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        wait_for(lambda: running.state()["completedapps"])
        assert [(app["name"], app["state"]) for app in running.state()["completedapps"]] == [
            ("selfmaint", "FINISHED")
        ]
    after = expected(base, update, contents.statements())
    assert stored(urls["LAKE_URL"], list(after)) == after
    written = "".join(found.read_text(encoding="utf-8") for found in (tmp_path / "events").rglob("events_*"))
    events = [json.loads(line) for line in written.splitlines()]
    assert tasks_of(events) == {
        str(number) for number in range(WORKERS)
    }  # the command itself would be `driver`
    plans = [event["physicalPlanDescription"] for event in events if "physicalPlanDescription" in event]
    assert any(str(tmp_path / "shared") in plan for plan in plans)
    assert not any(str(mine) in plan for plan in plans)
    shown = json.loads(ended.stdout)
    assert {one["relation"] for one in shown["reads"]} == {"part", "lineitem"}
    assert {Path(one["path"]) for one in shown["written"]} == {tmp_path / "shared" / "lake"}
    assert "committed before" in run(*maintain, "duckdb").stdout
