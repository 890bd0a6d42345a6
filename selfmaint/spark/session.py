"""The Spark session: the caller's own if there is one, else one as Spark is configured, by default local and quiet.

A session that this module starts has, from the strongest: the warehouse file's settings; what Spark is told in its own
ways (`spark-submit`, PYSPARK_SUBMIT_ARGS, `conf/spark-defaults.conf`); the recommended settings. These were chosen by
measurement for many small joins and unions: `spark.buffer.pageSize` matters most, as every broadcast hash table
allocates one page.
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
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from datalog.sql_settings import SQL_SETTINGS
from selfmaint.errors import Code, InputError, input_error

MINIMUM_JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_PYTHON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_MASTER = "spark.master"
_LOOPBACK = "127.0.0.1"
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
    """The active Spark session, untouched, or a new one.

    Settings go over all others; with an active session they are ignored.

    Returns:
        The session. The Java process of a new one prints nothing, unless it is that of `spark-submit`: it writes to a
        log file that is removed at exit. The two Python loggers that copy every failing query to standard error are
        disabled.

    Raises:
        InputError: SM501 Java is missing or too old, the Java process does not start, its master does not answer, or
            Spark Connect is asked for.
    """
    if SparkContext._active_spark_context is not None:
        return SparkSession.active()
    _refuse_remote(settings or {})
    if not _is_submitted():
        _require_java()
    for name in _PYTHON_LOGGERS:
        logging.getLogger(name).disabled = True
    directory = Path(tempfile.mkdtemp(prefix="selfmaint-spark-"))
    started = _start(settings or {}, directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return started


def require_usable(spark: object) -> None:
    """Refuses a session of Spark Connect, what is no session, and one in which SQL means something else.

    Raises:
        InputError: SM501.
    """
    if not isinstance(spark, SparkSession):  # callers may not be type-checked
        kind = type(spark)
        raise _no_connect(f"the session is a `{kind.__module__}.{kind.__qualname__}`, as of Spark Connect")
    for name, value in SQL_SETTINGS.items():
        found = spark.conf.get(name, value)
        if found is not None and found.casefold() != value.casefold():
            raise input_error(
                Code.NO_ENGINE,
                f"in the Spark session `{name}` is `{found}`, under which SQL means something else than is read here",
                hint=f"use a session in which it is `{value}`: `beside = spark.newSession()`, then "
                f'`beside.conf.set("{name}", "{value}")`; or use `--engine duckdb`',
            )


def _refuse_remote(settings: Mapping[str, str]) -> None:
    named = "SPARK_REMOTE" if "SPARK_REMOTE" in os.environ else "spark.remote"
    if named in {**os.environ, **settings}:
        raise _no_connect(f"{named} names a server of Spark Connect")
    if is_remote():
        raise _no_connect("the active session is one of Spark Connect")


def _no_connect(message: str) -> InputError:
    return input_error(
        Code.NO_ENGINE,
        f"{message}, over which selfmaint does not run",
        hint="use a session of the cluster itself: name its master, `spark.master` in `[engine]`, or run by "
        "`spark-submit`; or use `--engine duckdb`",
    )


def is_on_this_machine(spark: SparkSession) -> bool:
    """Whether Spark runs in processes of this machine alone."""
    return _is_local(spark.sparkContext.master)


def quick_session(spark: SparkSession) -> SparkSession:
    """A session beside another, with its settings but for those that cost time where results are small.

    Adaptive execution plans a statement anew after each of its stages, and each shuffle's partition is a task.
    """
    quick = spark.newSession()
    for name, value in {**spark.conf.getAll, **_QUICK}.items():
        if spark.conf.isModifiable(name):
            quick.conf.set(name, value)
    return quick


def recommended(directory: Path, *, is_local: bool = True) -> dict[str, str]:
    """The settings of a new session where nobody says otherwise; its warehouse lies in `directory`."""
    cores = _cores()
    inside = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK} if is_local else {}
    return {
        **inside,
        "spark.buffer.pageSize": "1m",
        "spark.ui.enabled": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(8, 2 * cores)),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
    }


_AT_LAUNCH = {"spark.app.name": "selfmaint", "spark.ui.showConsoleProgress": "false"}
"""What `spark-submit` itself has a default for, which would else count as the user's."""


def _start(settings: Mapping[str, str], directory: Path) -> SparkSession:
    log, logging_file = directory / "spark.log", directory / "log4j2.properties"
    logging_file.write_text(_LOG4J.format(log=log.as_posix()), encoding="utf-8")
    launch = SparkConf(loadDefaults=False).setAll(list({**_AT_LAUNCH, **settings}.items()))
    options = f"-Dlog4j2.configurationFile={logging_file.as_uri()} {os.environ.get('SPARK_SUBMIT_OPTS', '')}"
    try:
        with contextlib.ExitStack() as launching:
            output = launching.enter_context(log.open("ab"))
            launching.enter_context(_environment("SPARK_SUBMIT_OPTS", options, over=True))
            launching.enter_context(_environment("SPARK_DRIVER_MEMORY", f"{_driver_memory_mb()}m"))
            # Else whichever `python3` is on the PATH.
            launching.enter_context(_environment("PYSPARK_PYTHON", sys.executable))
            if not _may_leave_machine(settings):
                launching.enter_context(_environment("SPARK_LOCAL_IP", _LOOPBACK))
            gateway = launch_gateway(launch, popen_kwargs={"stdout": output, "stderr": output})
            conf = SparkConf(_jvm=gateway.jvm).setAll(list(settings.items()))  # with what Spark was told
            is_local = _is_local(conf.get(_MASTER))
            for name, value in recommended(directory, is_local=is_local).items():
                conf.setIfMissing(name, value)
            return SparkSession(SparkContext(gateway=gateway, conf=conf))
    except (PySparkException, Py4JError, OSError) as failure:
        raise input_error(
            Code.NO_ENGINE,
            f"Spark did not start: {_last_line(log) or type(failure).__name__}",
            hint=f"the Java process's output is in `{log}`; check the Spark settings, such as `spark.master`, "
            f"and {_INSTALL_JAVA}",
        ) from failure


def _is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def _is_submitted() -> bool:
    """Whether `spark-submit` runs this process, beside a Java process that is there already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _may_leave_machine(settings: Mapping[str, str]) -> bool:
    """Whether a session that is started with some settings may be one of several machines."""
    if _MASTER in settings:
        return not _is_local(settings[_MASTER])
    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    return "PYSPARK_SUBMIT_ARGS" in os.environ or Path(folder, "spark-defaults.conf").exists()


@contextlib.contextmanager
def _environment(name: str, value: str, *, over: bool = False) -> Iterator[None]:
    """An environment variable for the time of the block, unless it is set and not to be written over."""
    before = os.environ.get(name)
    os.environ[name] = value if before is None or over else before
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


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
    """What stands last in a log, without when, how grave and where."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return re.sub(r"^\S+ \S+ [A-Z]+ \w+: ", "", last)
