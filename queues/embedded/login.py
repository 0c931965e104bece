"""The login of a closed server: a random password, in a private file of its data directory."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from queues.private_directory import write_private
from queues.session.settings import Login

USER = "orchestrator"
PASSWORD_FILE = "password"  # noqa: S105 - the name of a file


def login_of(data_dir: Path) -> Login | None:
    """The login of the server with this data directory; None where its nodes are not closed yet."""
    file = data_dir.absolute() / PASSWORD_FILE
    with suppress(OSError):
        if file.stat().st_size:  # an empty one is what a crash of the machine left of it
            return Login(USER, password_file=str(file), server_uid=os.geteuid())
    return None


def make_login() -> Login:
    """A new one, with a password of 256 random bits."""
    return replace(Login.random(USER), server_uid=os.geteuid())


def keep_login(data_dir: Path, login: Login) -> None:
    """Write its password, whole or not at all: from then on the server counts as closed."""
    draft = data_dir / f".{PASSWORD_FILE}"
    write_private(draft, f"{login.secret()}\n")
    draft.replace(data_dir / PASSWORD_FILE)
