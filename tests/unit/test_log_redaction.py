"""Secrets are masked in log records; other text is unchanged."""

import json
import os
import time
import tracemalloc
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.logs.record.redaction import MASK, Redactor, masked, secrets_in, secrets_of
from tests.secret_kinds import KINDS, Kind

LONG_S = 2.0  # on a loaded machine; a failure takes minutes
SECRET = "Zx9$kQ-w_7/tR+2"  # noqa: S105 - made up

LEAKS = [
    f"password={SECRET}",
    f"PASSWORD: {SECRET}",
    f"db.password = {SECRET} and more",
    f"passwd={SECRET};",
    f"pwd={SECRET}",
    f'"password": "{SECRET}"',
    f"{{'passphrase': '{SECRET}', 'a': 1}}",
    f"spark.hadoop.fs.s3a.secret.key={SECRET}",
    f"spark.hadoop.fs.s3a.access.key.secret={SECRET}",
    f"api_key={SECRET}",
    f"api-key: {SECRET}",
    f"apikey={SECRET}",
    f"access_key={SECRET}",
    f"client_secret={SECRET}&grant_type=x",
    f"token={SECRET}",
    f"X-Auth-Token: {SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"authorization: Basic {SECRET}",
    f"Authorization: ApiKey {SECRET}",
    f"Authorization: {SECRET}",
    "Bearer abcdefghijkl.mnop-qrst",
    "AKIAIOSFODNN7EXAMPLE",
    f"https://user:{SECRET.replace('/', '')}@host/path",
    f"https://user:x@y@{SECRET.replace('/', '')}@host/path",
    f"jdbc:postgresql://host/db?user=me&password={SECRET}",
    f"credentials={SECRET}",
    f"--password={SECRET}",
    f"- name: DB_PASSWORD\n  value: {SECRET}",
    f"<name>fs.s3a.secret.key</name>\n  <value>{SECRET}</value>",
    f"OPTIONS ('password' '{SECRET}')",
    f'OPTIONS (s3.secret.key "{SECRET}")',
]
INNOCENT = [
    "the key of the table is id",
    "12 tokens were read",
    "token expired",
    "no password was given",
    "authorized by the owner",
    "author: somebody",
    "keyboard: us",
    "monkey=banana",
    "passing 3 arguments",
    "https://host:8080/path?a=b",
    "spark://master:7077",
    "hdfs://name@node/x",
    "compass: north",
    "primary key (a, b)",
    "basic statistics",
    "a bearer of news",
    "unexpected token 'INSERT' at line 3",
    "first pass: 3 of 4 files, pass=12 fail=0, bypass=true",
    "columns ['id', 'token', 'name']",
    "abfss://container@account.dfs.core.windows.net/x",
    "https://host:8080/path@v1 and http://[::1]:8080/a@b",
    "HashAggregate(keys=[token#12], functions=[count(1)])",
    "Map(path -> /x, header -> true)",
    "spark.x.password is not set",
    "x.client.keystore.location=/a/b, mapKey=3, partition_key=2026",
]


@pytest.mark.parametrize("text", LEAKS)
def test_text_that_looks_like_a_secret_is_masked(text: str) -> None:
    shown = Redactor().mask(text)
    assert MASK in shown
    for secret in (SECRET, SECRET.replace("/", ""), "abcdefghijkl", "AKIAIOSFODNN7EXAMPLE", SECRET[6:]):
        assert secret not in shown


SECRET_NAMES = (
    "db_password",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.data.dfs.core.windows.net",
    "spark.ssl.keyStorePassword",
    "api_token",
    "fs.azure.account.oauth2.client.secret.data.dfs.core.windows.net",
    "fs.azure.sas.container.data.blob.core.windows.net",
    "spark.hadoop.parquet.encryption.key.list",
    "schema.registry.basic.auth.user.info",
)
PLAIN_NAMES = (
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.security.credentials.enabled",
    "spark.kubernetes.authenticate.oauthTokenFile",
    "spark.ssl.keyStore",
    "primary_key",
    "day",
)


@pytest.mark.parametrize("text", INNOCENT)
def test_text_without_secrets_stays(text: str) -> None:
    assert Redactor().mask(text) == text


@given(st.text("xyz =:.\n"), st.text("abc|.*[", min_size=4, max_size=40), st.text("xyz ="))
def test_a_secret_that_is_known_never_shows(before: str, secret: str, after: str) -> None:
    assert secret not in Redactor([secret]).mask(before + secret + after)


@given(st.text())
def test_masking_raises_nothing_and_again_changes_nothing(text: str) -> None:
    once = Redactor().mask(text)
    assert Redactor().mask(once) == once


@given(
    st.lists(st.sampled_from(["x", "hunter22", "PASSWORD=a b", "tok", "en=7", "…" * 30])), st.integers(5, 40)
)
def test_the_fit_for_a_text_is_that_of_each_part_of_it(parts: list[str], limit: int) -> None:
    redactor = Redactor(["hunter22"])
    fit = redactor.fit_for("\n".join(parts))
    assert [fit(part, limit) for part in parts] == [redactor.fit(part, limit) for part in parts]


def test_settings_that_say_so_by_their_names_are_secrets() -> None:
    assert set(secrets_in({name: name for name in (*SECRET_NAMES, *PLAIN_NAMES)})) == set(SECRET_NAMES)


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    assert Redactor(["abcd", "abcdefgh"]).mask("x abcdefgh y abcd z") == f"x {MASK} y {MASK} z"


def test_secrets_that_are_too_short_are_not_masked_within_words() -> None:
    assert Redactor(["a", "the"]).mask("the apple") == "the apple"


def test_secrets_may_hold_what_means_something_in_patterns() -> None:
    assert Redactor([".*+?^$(){}|[]\\"]).mask("a .*+?^$(){}|[]\\ b") == f"a {MASK} b"


@pytest.mark.parametrize(
    "text",
    [
        *("key=" * 8_000, '"' * 30_000 + "secret", "://" * 10_000, "token='" * 4_000),
        *("." * 32_000 + " token", "a-" * 16_000 + "secret", "key" + " " * 32_000, "token" * 6_000),
        "x://a:" + "a@" * 16_000,
        *("-----BEGIN PRIVATE KEY-----" * 1_200, "eyJ" * 10_000 + "-", "eyJa-" * 6_000, "(a.token" * 4_000),
        *("--a-token " * 3_000, "digest:a" * 4_000, "\\" * 30_000 + "token=", "token=" + "\\" * 30_000),
        *('"name": "' + "a" * 32_000 + 'token "value"', "x-amz-sig" * 3_000 + "=", "basic " + "a" * 32_000),
        *('token="' + "\\x" * 15_000, "cookie:" * 4_000, "jdbc:oracle:a:" * 2_000, "token." * 5_000),
        *("-" * 200_000 + "secret", "--a-b-c-token" * 15_000, "a://b:c" * 30_000, "key=[" * 40_000),
        *("a." * 16_000 + "://", "http://" + "a" * 32_000, "bearer " * 5_000, "x:" * 16_000 + " pwd"),
    ],
)
def test_a_long_text_is_masked_in_no_time(text: str) -> None:
    since = time.perf_counter()
    Redactor().mask(text)
    assert time.perf_counter() - since < LONG_S


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_kind_of_secret_is_masked_in_text_and_nothing_before_it_is_lost(kind: Kind) -> None:
    shown = Redactor().mask(f"before {kind.text} after")
    assert shown.startswith("before ")
    assert MASK in shown
    assert [trace for trace in kind.traces if trace in shown] == []
    assert Redactor().mask(shown) == shown


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_kind_is_masked_where_a_text_is_cut_within_it(kind: Kind) -> None:
    text = f"{'x' * 50} {kind.text}"
    for limit in range(50, len(text)):
        fit = Redactor().fit(text, limit)
        assert [trace for trace in kind.traces if trace in fit] == []
        whole = text.index(kind.traces[0])
        assert text[whole : whole + 12] not in fit


def test_names_that_spark_redacts_are_hidden_where_settings_are_shown() -> None:
    shown = masked(
        {
            "spark.my.Token.file": "value-1",
            "spark.access.key": "value-2",
            "spark.accesskey": "value-3",
            "spark.secretary": "value-4",
            "spark.master": "local",
        }
    )
    assert {name for name, value in shown.items() if value == MASK} == shown.keys() - {"spark.master"}


def test_a_document_is_masked_by_the_names_of_its_settings_and_by_patterns_elsewhere() -> None:
    document = {
        "token": "queue-|job|00",
        "definition": {
            "variables": {"api_token": "abcdef", "day": "monday"},
            "spark": {"conf": {"spark.x.password": "abcdef"}},
            "script": "OPTIONS ('password' = 'abcdef')",
            "callback": {"url": "https://ada:abcdef@host:80/hooks/abcdef?x=1", "on": ["end"]},
        },
        "attempts": [{"tables": [{"options": {"url": "jdbc:x", "path": "/x"}}], "n": 1, "error": None}],
    }
    assert Redactor().document(document) == {
        "token": "queue-|job|00",
        "definition": {
            "variables": {"api_token": MASK, "day": "monday"},
            "spark": {"conf": {"spark.x.password": MASK}},
            "script": f"OPTIONS ('password' = {MASK})",
            "callback": {"url": f"https://{MASK}@host:80/{MASK}", "on": ["end"]},
        },
        "attempts": [{"tables": [{"options": {"url": MASK, "path": "/x"}}], "n": 1, "error": None}],
    }


def test_a_secret_is_known_in_urls_in_json_and_by_its_lines() -> None:
    redactor = Redactor(['pa ss/w"rd', "first line of a key\nABCDEFGHIJKLMNOPQRSTUV\n"])
    for text in ("x?p=pa%20ss%2Fw%22rd", '{"x": "pa ss/w\\"rd"}', "line: ABCDEFGHIJKLMNOPQRSTUV"):
        assert MASK in redactor.mask(text)


def test_the_label_of_a_key_file_is_no_secret_and_stays_in_other_certificates() -> None:
    certificate = "-----BEGIN CERTIFICATE-----\nABCDEFGHIJKLMNOPQRSTUV\n-----END CERTIFICATE-----\n"
    text = "-----BEGIN CERTIFICATE-----\nabc\n"
    assert Redactor([certificate]).mask(text) == text
    assert Redactor([certificate]).mask(f"a {certificate} b ABCDEFGHIJKLMNOPQRSTUV") == f"a {MASK} b {MASK}"


@pytest.mark.parametrize("secret", ["ab/cd=ef+gh", "two words+", "it's one", "gr\u00fc\u00df-dich"])
def test_a_secret_is_known_as_libraries_write_it(secret: str) -> None:
    texts = [quote(secret), quote_plus(secret), json.dumps(secret)[1:-1], secret.replace("'", "''")]
    assert {Redactor([secret]).mask(f"< {text} >") for text in texts} == {f"< {MASK} >"}


def test_the_half_of_a_secret_does_not_move_up_to_the_limit_when_others_are_masked() -> None:
    secret = "5e1f" * 20
    for cut in range(1, len(secret)):
        masked = "token=" + "a" * (1_024 + 65_536 - 7 - cut) + " "
        assert "5e1f" not in Redactor([secret]).fit(f"{masked}{secret} and more", 1_024)


def test_the_value_of_an_option_is_a_secret_in_one_word_and_in_two() -> None:
    document = {"arguments": ["--db-password", "hunter22", "--api-token=hunter33", "--secret", "--day", "x"]}
    assert secrets_of(document) == ["hunter22", "hunter33"]
    assert Redactor().document(document) == {
        "arguments": ["--db-password", MASK, f"--api-token={MASK}", "--secret", "--day", "x"]
    }


def test_secrets_of_settings_are_found_wherever_they_stand_but_for_references() -> None:
    plan = {"steps": [{"options": {"password": "hunter22", "token": "${env:T}", "use_token": "true"}}]}
    assert secrets_of(plan) == ["hunter22"]


def test_the_environment_is_known_from_the_first_text_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", "value-of-the-token")
    assert Redactor(source=lambda: secrets_in(os.environ)).mask("it is value-of-the-token") == f"it is {MASK}"


def test_a_text_that_comes_again_is_masked_anew_when_another_secret_is_known() -> None:
    redactor = Redactor(["first-secret"])
    name = "thread of first-secret and second-secret"
    assert [redactor.fit_repeated(name, 100) for _ in range(2)] == [f"thread of {MASK} and second-secret"] * 2
    redactor.add_of_job(["second-secret"])
    assert redactor.fit_repeated(name, 100) == f"thread of {MASK} and {MASK}"


def test_texts_that_come_again_take_no_more_memory_than_a_thousand_of_them() -> None:
    redactor, size = Redactor(), 0
    tracemalloc.start()
    try:
        for number in range(3_000):
            redactor.fit_repeated(f"{number:x>1000}", 1_000)
            size = max(size, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert size < 2_000_000


def test_secrets_of_jobs_give_way_to_those_of_later_jobs_and_others_stay() -> None:
    redactor = Redactor(["of-the-worker"])
    redactor.add_of_job(["of-the-worker", "of-the-first-job"])
    for number in range(3_000):
        redactor.add_of_job([f"of-job-{number:04}"])
    text = "of-the-worker of-the-first-job of-job-0999 of-job-1000 of-job-2999"
    assert redactor.mask(text) == f"{MASK} of-the-first-job of-job-0999 {MASK} {MASK}"


@pytest.mark.parametrize(
    ("before", "secret"),
    [
        ("", "5e1f" * 1_000),
        ("password=", '"' + "5e1f" * 1_000 + '"'),
        ("password=", "'" + "a 5e1f " * 1_000 + "'"),
        ("the token eyJh", "5e1f" * 1_000 + "." + "5e1f" * 1_000),
        ("https://user:", "5e1f" * 1_000 + "@host"),
        ("identified by '", "5e1f" * 1_000 + "'"),
    ],
)
def test_a_long_secret_is_masked_where_a_text_is_cut_within_it(before: str, secret: str) -> None:
    redactor = Redactor([] if before else [secret])
    for limit in (1_100, 2_000, 4_000):
        assert "5e1f" not in redactor.fit(f"{'x' * 1_000} {before}{secret} behind", limit)


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("end", ["", "\\", "\\\\ more"])
def test_the_first_line_of_a_quoted_secret_is_masked_to_its_end(quote: str, end: str) -> None:
    assert Redactor().mask(f"password = {quote}first half, and{end}") == f"password = {MASK}"
