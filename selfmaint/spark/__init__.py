"""Apache Spark: the session, execution behind the read guard, contents of views, sources of relations."""

from selfmaint.errors import Code, input_error

try:
    from pyspark import __version__ as _installed
    from pyspark.sql import DataFrame, SparkSession
except ImportError as missing:
    raise input_error(
        Code.NO_ENGINE,
        "PySpark is not installed",
        hint="install `pyspark` 4 or later into this Python environment",
    ) from missing
else:
    if int(_installed.split(".")[0]) < 4:  # noqa: PLR2004 - whose calls this package makes
        raise input_error(
            Code.NO_ENGINE,
            f"PySpark {_installed} is too old",
            hint="install `pyspark` 4 or later into this Python environment",
        )

from selfmaint.spark.engine import SparkEngine
from selfmaint.spark.session import session

__all__ = ["DataFrame", "SparkEngine", "SparkSession", "session"]
