"""Settings of a session of Spark for a part of the work."""

import contextlib
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession


@contextlib.contextmanager
def changed(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change these settings, and restore afterwards what the session had; Spark's defaults stay defaults."""
    conf = session.conf
    before = {key: conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            conf.set(key, value)
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                conf.unset(key)
            else:
                conf.set(key, earlier)
