"""Handles a log group as Aliyun SLS does: accepts a signed and readable group as a whole."""

import json
from dataclasses import dataclass
from typing import Any

from aliyun.log.compress import Compressor, CompressType
from aliyun.log.proto import LogGroupRaw

from tests.log_stub import Request, Said

HOST = "cn-test.sls.test"


@dataclass(frozen=True)
class Log:
    topic: str
    source: str
    time: int  # nanoseconds
    fields: dict[str, str]


class SlsStore:
    """One logstore. A group is refused if a field of it has `poison`."""

    def __init__(self) -> None:
        self.groups = list[list[Log]]()

    @property
    def logs(self) -> list[Log]:
        return [log for group in self.groups for log in group]

    @property
    def ids(self) -> list[str]:
        return [log.fields["event.id"] for log in self.logs]

    def check(self, request: Request) -> None:
        headers = request.headers
        assert (request.method, request.path) == ("POST", "/logstores/jobs/shards/lb")
        assert headers["host"] == f"orchestrator-logs.{HOST}"
        assert headers["content-type"] == "application/x-protobuf"
        assert headers["x-log-apiversion"] == "0.6.0"
        assert headers["x-log-signaturemethod"] == "hmac-sha1"
        assert headers["authorization"].startswith("LOG key-id:")
        assert headers["x-acs-security-token"] == "sts-token"
        assert _logs(request)

    def take(self, request: Request) -> Said:
        logs = _logs(request)
        if any("poison" in value for log in logs for value in log.fields.values()):
            return refused(400, "InvalidEncoding", "Non-UTF8 characters are in logs.")
        self.groups.append(logs)
        return Said(200)


def refused(status: int, code: str, message: str = "", **settings: Any) -> Said:
    """A refusal as from SLS."""
    body = json.dumps({"errorCode": code, "errorMessage": message}).encode()
    return Said(status, body, {"Content-Type": "application/json", "x-log-requestid": "6F"}, **settings)


def _logs(request: Request) -> list[Log]:
    size = int(request.headers["x-log-bodyrawsize"])
    assert request.headers["x-log-compresstype"] == "lz4"
    group = LogGroupRaw()
    group.ParseFromString(Compressor.decompress(request.data, size, CompressType.LZ4))
    return [
        Log(
            group.Topic,
            group.Source,
            log.Time * 10**9 + log.Time_ns,
            {content.Key: content.Value.decode() for content in log.Contents},
        )
        for log in group.Logs
    ]
