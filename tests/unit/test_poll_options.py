"""The options of tables whose rows clients fetch."""

import pytest

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import to_plan, validate

TOKEN = "token-of-clients-77"  # noqa: S105 - of these tests alone
TLS = {"ssl_certificate": "a certificate", "ssl_key": "a key"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "connector 'poll' needs option 'token'"),
        ({"token": ""}, "option 'token' of connector 'poll' cannot have this value"),
        ({"token": TOKEN, "port": "65536"}, "'port' of connector 'poll' cannot be '65536'"),
        ({"token": TOKEN, "page_size": "0"}, "'page_size' of connector 'poll' cannot be '0'"),
        ({"token": TOKEN, "page_bytes": "99999999999"}, "'page_bytes' of connector 'poll' cannot be"),
        ({"token": TOKEN, "client_timeout": "-1"}, "'client_timeout' of connector 'poll' cannot be '-1'"),
        ({"token": TOKEN, "client_timeout": "nan"}, "'client_timeout' of connector 'poll' cannot be 'nan'"),
        ({"token": TOKEN, "host": "a b"}, "it is no name or address of a host"),
        ({"token": TOKEN, "host": "${env:HOST}"}, "it is no name or address of a host"),
        ({"token": TOKEN, "host": ""}, "it is no name or address of a host"),
        ({"token": TOKEN, "ssl_key": "a key"}, "options 'ssl_certificate' and 'ssl_key' need each other"),
        (
            {"token": TOKEN, "order_by": "idd"},
            "'order_by' names 'idd', which is not a column; did you mean 'id'?",
        ),
        ({"token": TOKEN, "url": "http://h/"}, "unknown option 'url' of connector 'poll'"),
    ],
)
def test_a_wrong_option_is_an_error(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        validate("poll", options, ("id", "name"))
    assert words in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "localhost.example.org"])  # noqa: S104 - no test listens
def test_a_host_that_others_reach_needs_tls(host: str) -> None:
    with pytest.raises(OptionError, match="give options 'ssl_certificate' and 'ssl_key'"):
        validate("poll", {"token": TOKEN, "host": host})
    assert to_plan(validate("poll", {"token": TOKEN, "host": host, **TLS}))["host"] == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert to_plan(validate("poll", {"token": TOKEN, "host": host}))["host"] == host


def test_options_may_have_the_names_of_streaming_sql_engines() -> None:
    given = {"token": TOKEN, "sink.requests.max-buffered": "7", "sink.requests.max-inflight": "3"}
    found = to_plan(validate("poll", given))
    assert (found["buffer_records"], found["concurrency"]) == (7, 3)
