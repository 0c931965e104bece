"""The options of tables over HTTP, as a script writes them."""

import pytest

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.http.address import Server, split, statuses
from spark_runner.connectors.options import Guarantee, to_plan, validate

URL = "https://api.example.org/items"


def test_names_of_other_engines_mean_the_same_options() -> None:
    given = {
        "url": URL,
        "format": "json",
        "insert-method": "put",
        "http.sink.request.batch.size": "50",
        "gid.connector.http.sink.header.X-Tenant": "a",
        "http.sink.header.Origin": "b",
        "header.accept": "c",
        "http.sink.request.timeout": "9",
    }
    found = to_plan(validate("http", given))
    assert (found["method"], found["batch_size"], found["timeout"]) == ("PUT", 50, 9.0)
    assert (found["headers.X-Tenant"], found["headers.Origin"], found["headers.accept"]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs option 'url'"),
        ({"url": "ftp://h/x"}, "it is not an http or https URL"),
        ({"url": "https://h/x#part"}, "it is not an http or https URL"),
        ({"url": "https://h/a b"}, "it is not an http or https URL"),
        ({"url": "https://{id}.example.org/"}, "columns can be in its path and query alone"),
        ({"url": "https://h:port/"}, "its host or port is wrong"),
        ({"url": f"https://{'a' * 70}.example.org/"}, "its host or port is wrong"),
        ({"url": "https:///x"}, "its host or port is wrong"),
        ({"url": "https://h/a/../b"}, "its path has a segment '.' or '..'"),
        ({"url": "https://h/%2e%2E/b"}, "its path has a segment '.' or '..'"),
        ({"url": f"{URL}/{{idd}}"}, "option 'url' names 'idd', which is not a column; did you mean 'id'"),
        ({"url": URL, "body": "{nam}"}, "option 'body' names 'nam'"),
        ({"url": URL, "body": "{"}, "'{' has no counterpart"),
        ({"url": URL, "method": "GET"}, "'method' of connector 'http' cannot be 'GET'"),
        ({"url": URL, "token": "x", "username": "u", "password": "p"}, "'token' or 'username', not both"),
        ({"url": URL, "username": "u"}, "'username' and 'password' need each other"),
        ({"url": URL, "ssl_certificate": "x"}, "'ssl_certificate' and 'ssl_key' need each other"),
        ({"url": f"{URL}/{{id}}", "batch_size": "2"}, "batch_size above 1 needs a URL without columns"),
        ({"url": URL, "batch_size": "2", "method": "DELETE"}, "needs option 'body'"),
        ({"url": URL, "paging": "cursor"}, "paging 'cursor' needs option 'cursor_path'"),
        ({"url": URL, "success_status": "2xx"}, "write statuses as 200-299,409"),
        ({"url": URL, "header.Authorization": "x"}, "header 'Authorization' cannot be set"),
        ({"url": URL, "header.a b": "x"}, "'a b' is no name of a header"),
        ({"url": URL, "idempotency_header": "a:b"}, "it is no name of a header"),
        ({"url": URL, "tokn": "x"}, "unknown option 'tokn'.*did you mean 'token'"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        validate("http", options, ("id", "name"))


@pytest.mark.parametrize(
    "options",
    [
        {"url": "https://ada:hunter22@h/x"},
        {"url": URL, "header.Authorization": "hunter22"},
        {"url": URL, "header.X-Key": "hunter22", "header.Host": "h"},
    ],
)
def test_no_error_shows_a_value_that_may_be_a_secret(options: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        validate("http", options)
    assert "hunter22" not in str(caught.value)


def test_a_row_arrives_at_least_once_and_tables_of_one_url_are_one_place() -> None:
    found = validate("http", {"url": URL})
    assert found.guarantee(has_primary_key=True) is Guarantee.AT_LEAST_ONCE
    assert found.place() == URL


def test_a_url_has_a_server_and_a_path() -> None:
    assert split("HTTPS://Api.Example.org?a={b}") == (Server("https", "api.example.org", 443), "/?a={b}")
    assert str(split("http://[::1]:8080/x")[0]) == "http://[::1]:8080"
    assert statuses("200-202, 409") == {200, 201, 202, 409}
