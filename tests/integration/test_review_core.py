"""What a review of the core found: each of these failed before its correction."""

from typing import cast

from queues.backlog import Backlog
from queues.folder import Folder
from queues.names import Token
from queues.session import Session


def test_what_becomes_free_while_others_are_brought_back_is_not_lost() -> None:
    backlog = Backlog("accept", "default", Folder(cast("Session", None), "/q", lambda: None), lambda *_: None)
    names = [Token(due=1, seq=number, id=f"j{number}").name for number in range(2)]
    for name in names:
        backlog.put_aside(name)
    asked: list[str] = []

    def is_free(item_id: str) -> bool:  # j1 becomes so in between
        asked.append(item_id)
        return item_id == "j0" or asked.count("j1") > 1

    backlog.bring_back(is_free)
    assert sorted(backlog.find({"j0", "j1"})) == sorted(names)
