"""The loguru sink that appends each record to the spool."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from loguru import logger

from orchestrator.logs.console import configure_loguru
from orchestrator.logs.errors import SpoolUnusable, TargetRefuses
from orchestrator.logs.record.document import Days, DocumentBuilder
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.record.text import encoded
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.targets import open_target
from orchestrator.logs.spool.folder import bytes_in, expire
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.writer import Spool

if TYPE_CHECKING:
    from loguru import Message, Record


# A record of the shipper's own libraries would be shipped, which logs another one, without end.
_OWN_LIBRARIES = ("elastic_transport", "elasticsearch", "urllib3", "aliyun")


class SpoolSink:
    """Builds the document of a record and appends it to the spool; makes no network request."""

    def __init__(self, spool: Spool, builder: DocumentBuilder) -> None:
        self._spool, self._builder = spool, builder

    def __call__(self, message: "Message") -> None:
        """Append one record."""
        record = message.record
        index, document = self._builder.build(record)
        self._spool.append(index, encoded(document), level=record["level"].no)


def is_shippable(record: "Record") -> bool:
    """Whether a record comes from other code than the libraries that ship it."""
    return not (record["name"] or "").startswith(_OWN_LIBRARIES)


_DAY_SECONDS = 86_400.0
_MOST_SPOOLS = 1_000  # of short programs, a few kilobytes each
SPOOL = "spool"  # directory below the directory of logs


def spool_root(settings: LogSettings, folder: Path) -> Path:
    """The directory of this host's spools: below `logs.dir`, by default below `folder`."""
    return (settings.dir or folder) / SPOOL


class LogPipeline:
    """The log pipeline of a program, open from its start to its end. Never raises.

    `trouble` describes a failure in one sentence.
    """

    def __init__(self, settings: LogSettings, folder: Path, service: str) -> None:
        self._settings, self._folder, self._service = settings, folder, service
        self._spool: Spool | None = None
        self._shipper: Shipper | None = None
        self._handler: int | None = None
        self._trouble = ""
        self.checks: dict[str, Callable[[], str]] = {}
        """Health checks of parts that feed the spool, by name: each returns a reason, or "" if healthy."""

    @property
    def spool(self) -> Spool | None:
        """The spool, for documents built elsewhere; None if it could not be opened."""
        return self._spool

    @property
    def trouble(self) -> str:
        """Why logs do not reach the spool or the target; empty if they do."""
        if self._trouble or self._shipper is None:
            return self._trouble
        return self._shipper.trouble

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Start to receive records."""
        configure_loguru()  # before our handler is added: a later call would remove it
        root = spool_root(self._settings, self._folder)
        limits = SpoolLimits(max_bytes=self._settings.max_bytes, when_full=self._settings.when_full)
        try:
            spool = self._spool = Spool(root, limits)
        except SpoolUnusable as error:
            self._trouble = f"{error}; logs go to stderr only"
            logger.warning(self._trouble)
            return
        builder = DocumentBuilder(
            Days(self._settings.alias, self._settings.timezone), REDACTOR, self._service
        )
        self._handler = logger.add(
            SpoolSink(spool, builder),
            level=self._settings.level,
            format="{message}",
            filter=is_shippable,
            backtrace=False,
            diagnose=False,  # values of variables may be secrets
            catch=True,
        )
        spool.on_drops = self._report_drops
        self._ship(spool, root)

    def close(self) -> None:
        """Stop receiving records; ship the rest within the flush time of the shipper."""
        if self._handler is not None:
            with contextlib.suppress(ValueError):  # already removed with all handlers
                logger.remove(self._handler)
            self._handler = None
        drained = self._shipper.close() if self._shipper is not None else False
        if self._spool is not None:
            self._spool.close(remove=drained)
        self._spool = self._shipper = None

    def status(self) -> dict[str, Any] | None:
        """The status of the shipper; None without one."""
        return None if self._shipper is None else self._shipper.status()

    def usage(self) -> tuple[int, int] | None:
        """Bytes in the spools of this host and their limit; None without a spool."""
        if self._spool is None:
            return None
        return bytes_in(spool_root(self._settings, self._folder)), self._settings.max_bytes

    def _ship(self, spool: Spool, root: Path) -> None:
        try:
            target = open_target(self._settings)
        except TargetRefuses as error:
            self._trouble = f"logs stay in the spool: {error}"
            logger.warning(self._trouble)
            return
        if target is None:
            expire(root, max_age=self._settings.retention_days * _DAY_SECONDS, most=_MOST_SPOOLS)
        else:
            self._shipper = Shipper(root, target, spool=spool, report=logger.warning)
            self._shipper.start()

    def _report_drops(self) -> None:
        spool = self._spool
        if spool is not None:
            logger.warning("the log spool is full: {} records dropped so far", spool.dropped)
