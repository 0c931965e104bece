"""The loguru sink that appends each record to the spool."""

from typing import TYPE_CHECKING

from orchestrator.logs.record.document import DocumentBuilder
from orchestrator.logs.record.text import encoded
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
