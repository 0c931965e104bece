"""The reason why a server gave no answer, as text."""

import pytest

from spark_runner.runners.http_json import no_answer, refuses


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "HTTPConnection(host='h', port=1): Failed to connect: [Errno 111] Connection refused",
            "no server listens there (connection refused)",
        ),
        (
            "HTTPConnection(host='h', port=80): Failed to resolve 'h' ([Errno -2] Name or service not known)",
            "its host name is unknown",
        ),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "it does not speak TLS"),
        (
            "SSLError\n[SSL: X] certificate verify failed: unable to get local issuer certificate (_ssl.c:1)",
            "its certificate is not trusted (unable to get local issuer certificate)",
        ),
        (
            "HTTPConnectionPool(host='127.0.0.1', port=8088): Read timed out. (read timeout=10)",
            "Read timed out. (read timeout=10)",
        ),
        ("_Plain(host='h', port=1): its address is link-local", "its address is link-local"),
        (
            "<urllib3.connection.HTTPSConnection object at 0x7f0001>: Something new",
            "Something new",
        ),
    ],
)
def test_errors_of_libraries_are_shown_without_their_objects(said: str, words: str) -> None:
    assert no_answer(said).startswith(words)
    assert "0x" not in no_answer(said)


def test_an_address_that_is_none_takes_no_connection() -> None:
    assert refuses("127.0.0.1", "http", 1)
    assert refuses("no.such.host.invalid", "1", 1) == "its host name is unknown"
    assert refuses("[::1]", "1", 1)
