import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from spark_runner.protocol.errors import BackendUnreachable, KillError
from spark_runner.runners.yarn.api import Container, ResourceManager, YarnApplication
from tests.servers.pages import Page, Reply, serve_pages

APPLICATION = {
    "id": "application_1_0001",
    "state": "RUNNING",
    "finalStatus": "UNDEFINED",
    "applicationTags": "orchestrator-run-x-1,mine",
    "startedTime": 7,
    "amContainerLogs": "http://node:8042/node/containerlogs/container_e01_1_0001_01_000001/root",
}


def apps(*found: dict[str, Any]) -> Reply:
    return 200, {}, json.dumps({"apps": {"app": list(found)} if found else None})


@pytest.fixture
def manager() -> Iterator[Callable[[Page], str]]:
    """Start a ResourceManager that answers with a page; return its URL."""
    with ExitStack() as stack:
        yield lambda page: stack.enter_context(serve_pages(page))


Start = Callable[[Page], str]


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_applications_are_asked_for_by_tags_in_lower_case_and_as_a_user(manager: Start) -> None:
    asked = []

    def page(method: str, path: str) -> Reply:
        asked.append((method, urlsplit(path).path, parse_qs(urlsplit(path).query)))
        return apps(APPLICATION)

    (found,) = ResourceManager([manager(page)], user="me").applications(["Run-X-1", "other"])
    assert (found.id, found.state, found.started_ms) == ("application_1_0001", "RUNNING", 7)
    assert found.tags == {"orchestrator-run-x-1", "mine"}
    (method, path, query), *more = asked
    assert (method, path, more) == ("GET", "/ws/v1/cluster/apps", [])
    assert (query["applicationTags"], query["user.name"]) == (["run-x-1,other"], ["me"])


def test_many_tags_are_asked_for_in_few_requests_and_none_in_none(manager: Start) -> None:
    asked = []

    def page(_method: str, path: str) -> Reply:
        asked.append(path)
        return apps(APPLICATION)

    client = ResourceManager([manager(page)], user="me")
    assert len(client.applications([f"orchestrator-run-{n:040}" for n in range(120)])) == 1
    assert len(asked) == 3
    assert max(map(len, asked)) < 8000
    assert client.applications([]) == []


@pytest.mark.parametrize("body", ['{"apps":{}}', '{"apps":null}', '{"apps":{"app":[]}}'])
def test_no_applications_are_an_answer(manager: Start, body: str) -> None:
    assert ResourceManager([manager(lambda *_: (200, {}, body))], user="me").applications(["x"]) == []


@pytest.mark.parametrize(
    "reply",
    [
        (500, {}, "oh"),
        (404, {}, ""),
        (401, {"WWW-Authenticate": "Negotiate"}, ""),
        (200, {}, "<html>a proxy</html>"),
        (200, {}, ""),
        (200, {}, '{"other":1}'),
        (200, {}, '{"apps":{"app":[{"id":"application_1_1"}]}}'),
    ],
)
def test_any_other_answer_is_none_and_never_an_empty_list(manager: Start, reply: Reply) -> None:
    with pytest.raises(BackendUnreachable):
        ResourceManager([manager(lambda *_: reply)], user="me").applications(["x"])


def test_kerberos_is_said_in_words(manager: Start) -> None:
    reply = 401, {"WWW-Authenticate": "Negotiate"}, ""
    with pytest.raises(BackendUnreachable, match="Kerberos"):
        ResourceManager([manager(lambda *_: reply)], user="me").applications(["x"])


STANDBY = [
    (307, {"Location": "{active}/ws/v1/cluster/apps"}, "This is standby RM. The redirect url is: {active}"),
    (200, {"Refresh": "3; url={active}/ws/v1/cluster/apps"}, "This is standby RM. Redirecting to {active}"),
]


@pytest.mark.parametrize("standby", STANDBY)
def test_one_on_standby_is_passed_over_and_the_active_one_is_asked_first_from_then_on(
    manager: Start, standby: Reply
) -> None:
    asked = []

    def answer(name: str, reply: Reply) -> Reply:
        asked.append(name)
        return reply

    active = manager(lambda *_: answer("active", apps(APPLICATION)))
    status, headers, text = standby
    headers = {name: value.format(active=active) for name, value in headers.items()}
    reply = status, headers, text.format(active=active)
    client = ResourceManager([closed_port(), manager(lambda *_: answer("standby", reply)), active], user="me")
    assert client.applications(["x"])
    assert client.applications(["x"])
    assert asked == ["standby", "active", "active"]


@pytest.mark.parametrize("standby", STANDBY)
def test_an_active_manager_that_only_the_other_names_is_found(manager: Start, standby: Reply) -> None:
    active = manager(lambda *_: apps(APPLICATION))
    status, headers, text = standby
    headers = {name: value.format(active=active) for name, value in headers.items()}
    assert ResourceManager([manager(lambda *_: (status, headers, text))], user="me").applications(["x"])


@pytest.mark.parametrize(
    "standby",
    [*STANDBY, (200, {"Refresh": "5"}, "Can not find any active RM. Will retry in next 5 seconds.")],
)
def test_without_an_active_one_nothing_is_known(manager: Start, standby: Reply) -> None:
    status, headers, text = standby
    headers = {name: value.format(active=closed_port()) for name, value in headers.items()}
    client = ResourceManager([closed_port(), manager(lambda *_: (status, headers, text))], user="me")
    with pytest.raises(BackendUnreachable, match=r"no active ResourceManager.*standby"):
        client.applications(["x"])


@pytest.mark.parametrize("status", [200, 202, 404])
def test_an_end_that_is_ordered_or_not_needed_is_well(manager: Start, status: int) -> None:
    asked = []

    def page(method: str, path: str) -> Reply:
        asked.append((method, urlsplit(path).path))
        return status, {}, "{}"

    ResourceManager([manager(page)], user="me").kill(YarnApplication.of(APPLICATION))
    assert asked == [("PUT", "/ws/v1/cluster/apps/application_1_0001/state")]


def test_a_kill_without_the_right_to_it_is_reported(manager: Start) -> None:
    client = ResourceManager([manager(lambda *_: (403, {}, "not yours"))], user="me")
    with pytest.raises(KillError, match=r"application_1_0001 for user me: 403 not yours"):
        client.kill(YarnApplication.of(APPLICATION))


def test_the_first_container_is_known_by_the_page_of_its_logs() -> None:
    page = YarnApplication.of(APPLICATION).master_logs
    assert Container.of_page(page) == Container("container_e01_1_0001_01_000001", "http://node:8042")
    assert Container.of_page("") is None
    assert Container.of_page("http://node:8042/other") is None


def test_a_node_that_does_not_answer_says_of_no_container_that_it_runs() -> None:
    client = ResourceManager(["http://127.0.0.1:1"], user="me")
    assert not client.is_running(Container("container_1", closed_port()))
    with pytest.raises(BackendUnreachable):
        client.log(Container("container_1", closed_port()), "stdout", 100)


LOG = """\
Container: container_1 on localhost:26947
LogAggregationType: LOCAL
====================================================================
LogType:stdout.log
LogLastModifiedTime:Sat Nov 21 18:32:13 +0000 2026
LogLength:5
LogContents:
{contents}End of LogType:stdout.log{more}
**************************************************************************

"""


@pytest.mark.parametrize(
    "contents", ["", "here\n", "no newline", "End of LogType:stdout.log\nLogContents:\n\n"]
)
@pytest.mark.parametrize(
    "more", ["", ".This log file belongs to a running container and so may not be complete."]
)
def test_a_log_is_what_the_program_wrote(manager: Start, contents: str, more: str) -> None:
    node = manager(lambda *_: (200, {}, LOG.format(contents=contents, more=more)))
    log = ResourceManager([node], user="me").log(Container("container_1", node), "stdout.log", 100)
    assert log == contents.encode()


def test_a_log_that_is_not_there_is_none(manager: Start) -> None:
    node = manager(lambda *_: (404, {}, "not found"))
    assert ResourceManager([node], user="me").log(Container("container_1", node), "stdout.log", 100) is None
