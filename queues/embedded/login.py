"""The login of a closed server: a random password, in a private file of its data directory."""

import base64
import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from queues.private_directory import write_private
from queues.session.settings import Login

USER = "orchestrator"
PASSWORD_FILE = "password"  # noqa: S105 - the name of a file
_SECRET_BYTES = 32


def login_of(data_dir: Path) -> Login | None:
    """The login of the server with this data directory; None where its nodes are not closed yet."""
    file = data_dir.absolute() / PASSWORD_FILE
    with suppress(OSError):
        if file.stat().st_size:  # an empty one is what a crash of the machine left of it
            return Login(USER, password_file=str(file), server_uid=os.geteuid())
    return None


def make_login() -> Login:
    """A new one, with a password of 256 random bits."""
    return Login(USER, secrets.token_urlsafe(_SECRET_BYTES), server_uid=os.geteuid())


def keep_login(data_dir: Path, login: Login) -> None:
    """Write its password, whole or not at all: from then on the server counts as closed."""
    draft = data_dir / f".{PASSWORD_FILE}"
    write_private(draft, f"{login.secret()}\n")
    draft.replace(data_dir / PASSWORD_FILE)


def digest_of(login: Login) -> str:
    """The id by which ZooKeeper knows the login: `user:BASE64(SHA1(user:password))`."""
    digest = hashlib.sha1(f"{login.user}:{login.secret()}".encode()).digest()  # noqa: S324 - ZooKeeper's own
    return f"{login.user}:{base64.b64encode(digest).decode()}"
