import builtins
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.logs.errors import (
    RequestMalformed,
    RequestTooLarge,
    TargetBusy,
    TargetRefuses,
    TargetUnreachable,
)
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.shipping.loki import LokiTarget, loki_headers, push_body
from orchestrator.logs.shipping.sls import AccessKey, SlsTarget, access_key, error_of
from orchestrator.logs.shipping.target import spooled_record, spooled_records
from orchestrator.logs.shipping.targets import open_target
from tests.log_shipping_support import document, record

SLS = {"url": "https://cn-hangzhou.log.aliyuncs.com", "kind": "sls", "project": "p-1", "logstore": "l_1"}
URL = "http://127.0.0.1:1"


# ------------------------------------------------------------------ entries
def test_an_entry_has_its_time_in_nanoseconds_and_its_id() -> None:
    at = datetime(2026, 11, 22, 10, 12, 35, 123456, UTC)
    entry = spooled_record(record("p-1f", document(0, at=at, message="ü\n")))
    assert entry.time == 1_795_342_355_123_456_000
    assert entry.document["event.id"] == "p-1f"
    assert json.loads(entry.text) == entry.document


def test_an_id_that_is_in_the_document_stays() -> None:
    entry = spooled_record(record("p-1f", document(0, event_id="mine")))
    assert json.loads(entry.text) == entry.document
    assert entry.document["event.id"] == "mine"


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"no lines at all",
        b'{"create":{}}\n{"@timestamp":"2026-11-22T10:00:00Z"}\n',
        b'{"create":{"_id":"r"}}\n[]\n',
        b'{"create":{"_id":"r"}}\n{"message":"no time"}\n',
        b'{"create":{"_id":"r"}}\n{"@timestamp":17}\n',
        b'{"create":{"_id":"r"}}\n{"@timestamp":"yesterday"}\n',
        b'{"create":{"_id":"r"}}\n{"@timestamp":"2026-11-22T10:00:00"}\n',
        b'{"create":{"_id":"r"}}\n{"@timestamp":"2026-11-22T10:00:00Z","message":"\xff"}\n',
    ],
)
def test_data_that_is_no_record_becomes_a_dead_letter_with_the_reason(bad: bytes) -> None:
    good = record("r-1", document(1))
    entries, dead = spooled_records([bad, good])
    assert [entry.record for entry in entries] == [good]
    assert [letter.record for letter in dead] == [bad]
    assert dead[0].reason.startswith("not a log record")


# ------------------------------------------------------------------ Loki
def test_streams_are_in_order_of_time_and_have_an_hour_of_the_week() -> None:
    sunday = datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC)
    entries, _ = spooled_records(
        [record(f"r-{number}", document(number, at=sunday)) for number in (1500, 7, 3)]
    )
    night, evening = push_body(entries)["streams"]
    assert night["stream"] == {"service_name": "worker", "host": "host-1", "level": "info", "hour": "1-00"}
    assert evening["stream"]["hour"] == "7-23"
    assert [json.loads(line)["event.id"] for _, line in evening["values"]] == ["r-3", "r-7"]


def test_a_label_without_a_value_is_unknown() -> None:
    entries, _ = spooled_records([record("r", {"@timestamp": "2026-11-22T10:00:00Z"})])
    (stream,) = push_body(entries)["streams"]
    assert stream["stream"] == dict.fromkeys(("service_name", "host", "level"), "unknown") | {"hour": "7-10"}


def test_a_key_with_a_colon_is_a_user_and_a_password_else_it_is_a_token(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("user:pass\n", encoding="utf-8")
    assert loki_headers(key, "") == {"authorization": "Basic dXNlcjpwYXNz"}
    key.write_text("glc_abc\n", encoding="utf-8")
    assert loki_headers(key, "a") == {"authorization": "Bearer glc_abc", "x-scope-orgid": "a"}
    with pytest.raises(TargetRefuses, match="none"):
        loki_headers(tmp_path / "none", "")


# ------------------------------------------------------------------ SLS
@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (403, "WriteQuotaExceed", "", TargetBusy),
        (403, "ShardWriteQuotaExceed", "", TargetBusy),
        (429, "BadResponse", "", TargetBusy),
        (500, "InternalServerError", "", TargetUnreachable),
        (503, "ServerBusy", "", TargetUnreachable),
        (200, "LogRequestError", "connection refused", TargetUnreachable),
        (200, "LogRequestError", "SSLError: CERTIFICATE_VERIFY_FAILED", TargetRefuses),
        (400, "PostBodyTooLarge", "", RequestTooLarge),
        (413, "BadResponse", "", RequestTooLarge),
        (400, "PostBodyInvalid", "", RequestMalformed),
        (499, "PostBodyInvalid", "time is out of range", RequestMalformed),
        (400, "RequestTimeExpired", "", TargetRefuses),
        (401, "Unauthorized", "", TargetRefuses),
        (403, "ProjectForbidden", "", TargetRefuses),
        (404, "ProjectNotExist", "", TargetRefuses),
    ],
)
def test_an_error_of_sls_means(status: int, code: str, message: str, kind: type[Exception]) -> None:
    error = error_of(status, code, message)
    assert type(error) is kind
    assert f"{status} {code}" in str(error)


def test_an_access_key_is_in_a_file_or_in_the_environment_and_is_not_shown(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("id:sec:to:ken\n", encoding="utf-8")
    found = access_key(key)
    assert (found.identity, found.secret, found.token) == ("id", "sec", "to:ken")
    assert "sec" not in repr(found)
    environment = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "id", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "sec"}
    assert access_key(None, environment) == AccessKey("id", "sec")


@pytest.mark.parametrize("text", ["", "only-an-id", ":secret", "id:"])
def test_half_an_access_key_is_refused(tmp_path: Path, text: str) -> None:
    key = tmp_path / "key"
    key.write_text(text, encoding="utf-8")
    with pytest.raises(TargetRefuses, match="must contain id:secret"):
        access_key(key)


def test_no_access_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetRefuses, match="set ALIBABA_CLOUD_ACCESS_KEY_ID and"):
        access_key(None, {"ALIBABA_CLOUD_ACCESS_KEY_ID": "id"})
    with pytest.raises(TargetRefuses, match="none"):
        access_key(tmp_path / "none")


# ------------------------------------------------------------------ choice of the target
@pytest.mark.parametrize(
    ("settings", "kind"),
    [({}, ElasticsearchTarget), ({"kind": "loki"}, LokiTarget), (SLS, SlsTarget)],
)
def test_the_settings_name_the_target(
    settings: dict[str, str], kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text("id:secret", encoding="utf-8")
    monkeypatch.delenv("ALIBABA_CLOUD_ACCESS_KEY_ID", raising=False)
    target = open_target(LogSettings.model_validate({"url": URL, "key_file": key, **settings}))
    assert target is not None
    assert type(target) is kind
    target.close()
    assert open_target(LogSettings.model_validate({**settings, "url": ""})) is None


def test_without_the_sdk_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("aliyun"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return load(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "orchestrator.logs.shipping.loghub", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TargetRefuses, match=r"pip install 'spark-job-orchestrator\[sls\]'"):
        open_target(LogSettings.model_validate(SLS))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "splunk"}, "'elasticsearch', 'loki' or 'sls'"),
        ({"tenant": "a"}, "tenant is for kind loki, not for elasticsearch"),
        ({"kind": "loki", "tenant": "a\r\nb"}, "is not a tenant"),
        ({"kind": "loki", "project": "p-1"}, "project and logstore are for kind sls, not for loki"),
        ({"kind": "sls", "url": URL}, "kind sls needs a project and a logstore"),
        ({**SLS, "project": "p/1"}, "is not a name in SLS"),
        ({**SLS, "url": f"{URL},{URL}"}, "kind sls takes one url"),
        ({**SLS, "ca_file": "/ca.pem"}, "REQUESTS_CA_BUNDLE"),
    ],
)
def test_settings_that_do_not_fit_their_kind_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        LogSettings.model_validate(settings)
