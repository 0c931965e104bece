"""Masks the values that a driver has read, in all that its process, its JVM and Spark's UI write.

The texts are known only while the driver runs, so no layout of a log and no property can hold them before.
"""

import re
import sys
from collections.abc import Collection, Iterable
from typing import Any, TextIO, cast

from pyspark.sql import SparkSession

from spark_runner.protocol.redacted import add_secrets, redacted, spellings

_MASK = "***"
_MASKED = re.compile(r"^%replace\{(.*)\}\{[^{}]*\}\{\*\*\*\}(?=%n$)", re.DOTALL)  # a layout of `_mask_log`
_STRINGS, _OPTIONS = "spark.sql.redaction.string.regex", "spark.sql.redaction.options.regex"
_USUAL = {_STRINGS: "", _OPTIONS: "(?i)url"}  # of Spark


class MaskedStream:
    """A stream of text that masks all known secrets."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the masked text."""
        self._stream.write(cast("str", redacted(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write masked lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Masks:
    """Everything that masks in this driver; `own_jvm`: no other job logs in its JVM."""

    def __init__(self, *, own_jvm: bool = True) -> None:
        self._own_jvm = own_jvm
        self._values = list[str]()
        self._in_log = ""  # the pattern that the log masks

    def add(self, values: Collection[str]) -> None:
        """Mask these values from now on, in this process."""
        self._values += values
        add_secrets(values)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if not isinstance(stream, MaskedStream):
                setattr(sys, name, MaskedStream(stream))

    def apply(self, session: SparkSession) -> None:
        """Mask the known values in what Spark shows of plans and options of this session, and in its log."""
        pattern = "|".join(map(_java_pattern, spellings(self._values)))
        if not pattern:
            return
        # The UI shows changed settings of a session: the names and values of these two match themselves.
        own = rf"{pattern}|spark\.sql\.redaction\."
        for name, usual in _USUAL.items():
            value = session.conf.get(name, usual) or usual
            if own not in value:
                session.conf.set(name, f"{value}|{own}" if value else own)
        if self._own_jvm and pattern != self._in_log:
            _mask_log(session, pattern)
            self._in_log = pattern


def _java_pattern(text: str) -> str:
    r"""The pattern of this very text, in which no brace ends an option of a layout."""
    units = text.encode("utf-16-be")
    codes = (units[index : index + 2] for index in range(0, len(units), 2))
    return "".join(
        chr(code) if re.fullmatch(r"[A-Za-z0-9]", chr(code)) else f"\\u{code:04x}"
        for code in (int.from_bytes(pair, "big") for pair in codes)
    )


def _mask_log(session: SparkSession, pattern: str) -> None:
    """Replace the layouts of log4j in this JVM: it has no way to add a mask to a layout."""
    jvm: Any = session._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    kind = jvm.java.lang.Class.forName("org.apache.logging.log4j.core.appender.AbstractAppender")
    field = kind.getDeclaredField("layout")
    field.setAccessible(True)
    for appender in context.getConfiguration().getAppenders().values():
        layout = appender.getLayout()
        if layout is None or layout.getClass().getSimpleName() != "PatternLayout":
            continue
        plain = _MASKED.sub(r"\1", layout.getConversionPattern())
        line = plain.removesuffix("%n")
        masked = f"%replace{{{line}}}{{{pattern}}}{{{_MASK}}}%n"
        made = log4j.core.layout.PatternLayout.newBuilder()
        made.withPattern(masked).withCharset(layout.getCharset()).withAlwaysWriteExceptions(False)
        field.set(appender, made.build())
