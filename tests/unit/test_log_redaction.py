"""Secrets never stand in what is logged; words that are none stay as they are."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.logs.record.redaction import MASK, Redactor, secrets_in

LONG_S = 2.0  # on a loaded machine; what goes wrong here takes minutes
SECRET = "Zx9$kQ-w_7/tR+2"  # noqa: S105 - of nobody

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
]


@pytest.mark.parametrize("text", LEAKS)
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    masked = Redactor().mask(text)
    assert MASK in masked
    for secret in (SECRET, SECRET.replace("/", ""), "abcdefghijkl", "AKIAIOSFODNN7EXAMPLE", SECRET[6:]):
        assert secret not in masked


SECRET_NAMES = (
    "db_password",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.data.dfs.core.windows.net",
    "spark.ssl.keyStorePassword",
    "api_token",
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
def test_what_is_no_secret_stays(text: str) -> None:
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
def test_what_fits_in_a_text_is_what_fits_in_each_part_of_it(parts: list[str], limit: int) -> None:
    redactor = Redactor(["hunter22"])
    fit = redactor.fit_for("\n".join(parts))
    assert [fit(part, limit) for part in parts] == [redactor.fit(part, limit) for part in parts]


def test_settings_that_say_so_by_their_names_are_secrets() -> None:
    assert set(secrets_in({name: name for name in (*SECRET_NAMES, *PLAIN_NAMES)})) == set(SECRET_NAMES)


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    assert Redactor(["abcd", "abcdefgh"]).mask("x abcdefgh y abcd z") == f"x {MASK} y {MASK} z"


def test_what_is_too_short_for_a_secret_takes_no_words_apart() -> None:
    assert Redactor(["a", "the"]).mask("the apple") == "the apple"


def test_secrets_may_hold_what_means_something_in_patterns() -> None:
    assert Redactor([".*+?^$(){}|[]\\"]).mask("a .*+?^$(){}|[]\\ b") == f"a {MASK} b"


@pytest.mark.parametrize(
    "text",
    [
        *("key=" * 8_000, '"' * 30_000 + "secret", "://" * 10_000, "token='" * 4_000),
        *("." * 32_000 + " token", "a-" * 16_000 + "secret", "key" + " " * 32_000, "token" * 6_000),
        "x://a:" + "a@" * 16_000,
        *("a." * 16_000 + "://", "http://" + "a" * 32_000, "bearer " * 5_000, "x:" * 16_000 + " pwd"),
    ],
)
def test_a_long_text_is_masked_in_no_time(text: str) -> None:
    since = time.perf_counter()
    Redactor().mask(text)
    assert time.perf_counter() - since < LONG_S
