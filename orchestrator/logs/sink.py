"""What loguru calls for each record."""

from typing import TYPE_CHECKING

from orchestrator.logs.record.document import DocumentBuilder
from orchestrator.logs.record.text import encoded
from orchestrator.logs.spool.writer import Spool

if TYPE_CHECKING:
    from loguru import Message, Record

# What the shipper's own libraries say would be shipped, and so said again, without end.
_OWN_LIBRARIES = ("elastic_transport", "elasticsearch", "urllib3", "aliyun")


class SpoolSink:
    """Builds the document and appends it to the spool; asks no server, and waits for none."""

    def __init__(self, spool: Spool, builder: DocumentBuilder) -> None:
        self._spool, self._builder = spool, builder

    def __call__(self, message: "Message") -> None:
        """Take one record."""
        record = message.record
        index, document = self._builder.build(record)
        self._spool.append(index, encoded(document), level=record["level"].no)


def is_shippable(record: "Record") -> bool:
    """Whether a record does not come from the libraries with which it would be shipped."""
    return not (record["name"] or "").startswith(_OWN_LIBRARIES)
