"""The SDK of Aliyun SLS, wrapped: it comes with the extra `sls`, and is loaded only where logs go there."""

import json
from collections.abc import Sequence
from typing import Any, cast

from aliyun.log import LogClient, LogException
from aliyun.log.proto import LogGroupRaw

from orchestrator.logs.shipping.entry import SpooledRecord
from orchestrator.logs.shipping.sls import AccessKey, error_of

_SECONDS = 30  # to connect, and to wait for an answer
_NANOSECONDS = 1_000_000_000


class Loghub:
    """Puts log groups into one logstore. Safe to use from several threads: its connections are a pool."""

    def __init__(self, endpoint: str, project: str, logstore: str, key: AccessKey) -> None:
        self._project, self._logstore = project, logstore
        # A source, because without one the client asks the name service for its own address.
        self._client = _Once(endpoint, key.identity, key.secret, key.token or None, source="-")
        self._client.timeout = _SECONDS
        # The session follows redirects, and takes the header with the security token along.
        cast("Any", self._client)._session.max_redirects = 0  # noqa: SLF001 - there is no other way to it

    def put(self, topic: str, source: str, entries: Sequence[SpooledRecord]) -> None:
        """Send entries, once, all or nothing; raises TargetError."""
        group = LogGroupRaw()
        group.Topic, group.Source = topic, source
        for entry in entries:
            log = group.Logs.add()
            log.Time, log.Time_ns = divmod(entry.time, _NANOSECONDS)
            for name, value in entry.document.items():
                content = log.Contents.add()
                content.Key, content.Value = name, _text(value).encode()
        self._client.put_log_raw(self._project, self._logstore, group)


class _Once(LogClient):
    """The client without its own ten attempts, a second apart: the pace is the shipper's."""

    def _sendRequest(self, *arguments: Any, **named: Any) -> Any:  # noqa: N802 - the name is the SDK's
        try:
            return super()._sendRequest(*arguments, **named)  # type: ignore[misc]  # not in its stubs
        except LogException as error:
            # No LogException: on that one the client would try again.
            raise error_of(
                int(error.get_resp_status()), error.get_error_code(), error.get_error_message()
            ) from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
