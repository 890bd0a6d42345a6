"""The Spark session: the caller's own if there is one, else a local one, started quietly.

The settings of a session that this module starts were chosen by measurement for many small joins and unions:
`spark.buffer.pageSize` matters most, as every broadcast hash table allocates one page.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from selfmaint.errors import Code, InputError, input_error

MINIMUM_JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_PYTHON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_INSTALL_JAVA = (
    f"install a Java runtime, version {MINIMUM_JAVA} or later (for example the package "
    "`openjdk-17-jre-headless`), and put `java` on the PATH or set JAVA_HOME"
)
_QUICK = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active Spark session, untouched, or a new local one.

    Args:
        settings: Spark settings that go over the recommended ones; ignored when a session is active.

    Returns:
        The session. A new one prints nothing: the Java process writes to a log file that is removed at exit,
        and the two Python loggers that copy every failing query to standard error are disabled.

    Raises:
        InputError: SM501 Java is missing or too old, or the Java process does not start.
    """
    if SparkContext._active_spark_context is not None:
        return SparkSession.active()
    _require_java()
    for name in _PYTHON_LOGGERS:
        logging.getLogger(name).disabled = True
    directory = Path(tempfile.mkdtemp(prefix="selfmaint-spark-"))
    started = _start(_merged(recommended(directory), settings or {}), directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return started


def quick_session(spark: SparkSession) -> SparkSession:
    """A session beside another, with its settings but for those that cost time where results are small.

    Adaptive execution plans a statement anew after each of its stages, and each shuffle's partition is a task.
    """
    quick = spark.newSession()
    for name, value in {**spark.conf.getAll, **_QUICK}.items():
        if spark.conf.isModifiable(name):
            quick.conf.set(name, value)
    return quick


def recommended(directory: Path) -> dict[str, str]:
    """The settings of a new session, whose log and warehouse lie in `directory`."""
    cores = _cores()
    logging_file = (directory / "log4j2.properties").as_uri()
    return {
        "spark.app.name": "selfmaint",
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": f"{_driver_memory_mb()}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={logging_file}",
        "spark.buffer.pageSize": "1m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(8, 2 * cores)),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
    }


def _merged(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Their settings over ours; their options for Java after ours, of which the last counts."""
    merged = {**ours, **theirs}
    if _JAVA_OPTIONS in theirs:
        merged[_JAVA_OPTIONS] = f"{ours[_JAVA_OPTIONS]} {theirs[_JAVA_OPTIONS]}"
    return merged


def _start(settings: Mapping[str, str], directory: Path) -> SparkSession:
    log = directory / "spark.log"
    (directory / "log4j2.properties").write_text(_LOG4J.format(log=log.as_posix()), encoding="utf-8")
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        with (
            log.open("ab") as output,
            _environment("SPARK_LOCAL_IP", "127.0.0.1"),
            _environment("PYSPARK_PYTHON", sys.executable),  # else whichever `python3` is on the PATH
        ):
            gateway = launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})
            return SparkSession(SparkContext(gateway=gateway, conf=conf))
    except (PySparkException, Py4JError, OSError) as failure:
        raise input_error(
            Code.NO_ENGINE,
            f"Spark did not start: {_last_line(log) or type(failure).__name__}",
            hint=f"the Java process's output is in `{log}`; check the Spark settings and {_INSTALL_JAVA}",
        ) from failure


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """An environment variable for the time of the block, unless it is set."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def _require_java() -> None:
    """Refuses a missing or old Java before Spark fails on it at length."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise _no_java(f"JAVA_HOME is set, but there is no `{java}`" if java else "Java was not found")
    try:
        shown = subprocess.run(  # noqa: S603 - the user's own Java, no shell
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise _no_java(f"`{java}` does not run") from failure
    major = java_major(shown.stderr + shown.stdout)
    if major is not None and major < MINIMUM_JAVA:
        raise _no_java(f"Java {major} is too old")


def java_major(version: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> java_major('openjdk version "17.0.15" 2025-04-15'), java_major('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    return int(found.group(1)) if found else None


def _no_java(message: str) -> InputError:
    return input_error(Code.NO_ENGINE, message, hint=_INSTALL_JAVA)


def _cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _driver_memory_mb() -> int:
    """A quarter of the machine's memory, from 1 to 8 GB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (AttributeError, ValueError, OSError):
        total = 0
    return min(8192, max(1024, total // 4))


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
