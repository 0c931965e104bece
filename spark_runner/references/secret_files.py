"""Secrets in a folder with a file for each key, as Kubernetes mounts them."""

import os
from pathlib import Path

from spark_runner.protocol.plain_file import read_plain
from spark_runner.references.errors import Unavailable

MAX_SECRET_BYTES = 64 * 1024  # a key store in base64 fits; a file of data does not


def read_secret(folder: str, key: str) -> str:
    """The text of one file, without one newline at its end; raises Unavailable.

    A symbolic link may lead to another place of the folder, as in a volume of Kubernetes, and not out of it.
    """
    root = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(root / key))
    if not path.is_relative_to(root):
        raise Unavailable(f"the file {key} in {folder} is a link out of that folder")
    try:
        data = read_plain(path, MAX_SECRET_BYTES)
    except FileNotFoundError:
        where = f"there is no file {key} in {folder}" if root.is_dir() else f"there is no folder {folder}"
        raise Unavailable(f"{where} on the host of the driver") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unavailable(f"the file {key} in {folder} cannot be read: {reason}") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Unavailable(f"the file {key} in {folder} is not text in UTF-8") from None  # it quotes bytes
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
