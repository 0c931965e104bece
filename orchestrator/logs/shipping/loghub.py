"""Wraps the SDK of Aliyun SLS, which the extra `sls` installs. Imported only with `logs.kind` sls."""

import json
from collections.abc import Sequence
from typing import Any, cast

from aliyun.log import LogClient, LogException
from aliyun.log.proto import LogGroupRaw

from orchestrator.logs.shipping.sls import AccessKey, error_of
from orchestrator.logs.shipping.target import SpooledRecord

_SECONDS = 30  # timeout to connect, and to read
_NANOSECONDS = 1_000_000_000


class Loghub:
    """Writes log groups to one logstore. Thread-safe: its connections are a pool."""

    def __init__(self, endpoint: str, project: str, logstore: str, key: AccessKey) -> None:
        self._project, self._logstore = project, logstore
        # Without a source the client resolves the address of this host.
        self._client = _Once(endpoint, key.identity, key.secret, key.token or None, source="-")
        self._client.timeout = _SECONDS
        # The session would follow redirects, and send the header with the security token there.
        cast("Any", self._client)._session.max_redirects = 0  # noqa: SLF001 - the SDK has no setting for it

    def put(self, topic: str, source: str, records: Sequence[SpooledRecord]) -> None:
        """Send records in one request without retries, all or nothing; raises TargetError."""
        group = LogGroupRaw()
        group.Topic, group.Source = topic, source
        for record in records:
            log = group.Logs.add()
            log.Time, log.Time_ns = divmod(record.time, _NANOSECONDS)
            for name, value in record.document.items():
                content = log.Contents.add()
                content.Key, content.Value = name, _text(value).encode()
        self._client.put_log_raw(self._project, self._logstore, group)


class _Once(LogClient):
    """The client without its ten attempts, one second apart: the shipper retries."""

    def _sendRequest(self, *arguments: Any, **named: Any) -> Any:  # noqa: N802 - the name is the SDK's
        try:
            return super()._sendRequest(*arguments, **named)  # type: ignore[misc]  # not in its stubs
        except LogException as error:
            # Not a LogException, with which the client would retry.
            raise error_of(
                int(error.get_resp_status()), error.get_error_code(), error.get_error_message()
            ) from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
