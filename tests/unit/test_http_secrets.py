"""Secrets of a table of the HTTP connector in what its server answers: no message has a part of one."""

import base64
from contextlib import closing

import pytest

from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.pages import Pages
from tests.http_support import ROWS, in_turn, plan, sender
from tests.servers.web import Reply, web_server

TOKEN = "Q7-abcdefghijklmnopqrstuvwxyz-0123456789"  # noqa: S105 - of this test alone
KEY = "K" * 3_000


def assert_no_part(text: str, secret: str = TOKEN) -> None:
    assert secret[:4] not in text


# Characters before the secret: it crosses the end of a message, of what is masked, and of what is read.
@pytest.mark.parametrize("before", [150, 180, 199, 760, 780, 799, 835, 3_790, 65_500, 65_535])
@pytest.mark.parametrize("filler", ["e", " ", "ä"])
@pytest.mark.parametrize("status", [422, 401, 503])
def test_an_answer_in_a_message_has_no_part_of_a_secret(before: int, filler: str, status: int) -> None:
    body = (filler * before + TOKEN + 70_000 * " ").encode()
    with (
        web_server(lambda _: Reply(status, body)) as server,
        sender(f"{server.url}/items", secrets=f"{KEY}|{TOKEN}", token=TOKEN, retry_timeout="0") as found,
    ):
        try:
            ((reason, _),) = found.write(ROWS[:1])
        except (ConnectorError, Unreachable) as error:
            reason = str(error)
    assert str(status) in reason
    assert_no_part(reason)


def test_a_message_has_the_text_around_a_secret() -> None:
    body = f"bad  login:\n{TOKEN} of {KEY}; ask us".encode()
    with (
        web_server(lambda _: Reply(422, body)) as server,
        sender(f"{server.url}/items", secrets=f"{KEY}|{TOKEN}") as found,
    ):
        assert found.write(ROWS[:1]) == [("HTTP 422 bad login: *** of ***; ask us", '{"n":0}')]


@pytest.mark.parametrize("secret", ["two  spaces", "one space"])
def test_spaces_of_a_secret_do_not_hide_it(secret: str) -> None:
    for written in (secret, secret.replace("one ", "one\n")):
        with (
            web_server(in_turn(Reply(422, written.encode()))) as server,
            sender(f"{server.url}/items", secrets=secret) as found,
        ):
            assert found.write(ROWS[:1]) == [("HTTP 422 ***", '{"n":0}')]


def test_a_login_that_has_another_secret_in_it_is_masked_as_a_whole() -> None:
    with (
        web_server(lambda _: Reply(422, TOKEN.encode())) as server,
        sender(f"{server.url}/items", secrets="abcd", token=TOKEN) as found,
    ):
        assert found.write(ROWS[:1]) == [("HTTP 422 ***", '{"n":0}')]


@pytest.mark.parametrize("before", [0, 180])
def test_an_answer_that_is_none_shows_no_part_of_a_login(before: int) -> None:
    login = base64.b64encode(f"ada:{TOKEN}".encode())
    with (
        web_server(lambda _: Reply(interim=before * b"e" + b" " + login + b"\r\n\r\n")) as server,
        sender(
            f"{server.url}/items", secrets=TOKEN, username="ada", password=TOKEN, retry_timeout="0"
        ) as found,
        pytest.raises(Unreachable, match="does not answer") as caught,
    ):
        found.write(ROWS)
    assert_no_part(str(caught.value), login.decode())


def test_a_refused_page_and_a_link_to_another_server_show_no_part_of_a_secret() -> None:
    link = f"<https://{180 * 'e'}.{TOKEN}/>; rel=next"
    replies = [Reply(400, b"e" * 180 + TOKEN.encode()), Reply(body=b"[1]", headers={"Link": link})]
    for reply in replies:
        with web_server(in_turn(reply)) as server:
            given = plan(server.url, token=TOKEN, paging="link")
            with closing(Client(given)) as client, pytest.raises(ConnectorError) as caught:
                list(Pages(client, given))
        assert_no_part(str(caught.value).lower(), TOKEN.lower())
