"""Another user with Spark's own client and without the secret."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.another_user import STRANGER
from tests.jar_support import make_jar, spark_jars


def loot(ports: Iterable[int], shelf: Path) -> str:
    """The data that another user gets from these ports; every user may read the folder `shelf`."""
    jar = make_jar("Thief", shelf)
    may_change = os.geteuid() == 0 and _is_readable(spark_jars())
    who: dict[str, Any] = {}
    if may_change:
        who = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
    command = ["java", "-cp", f"{jar}:{spark_jars()}/*", "Thief", *map(str, ports)]
    said = subprocess.run(command, check=True, timeout=200, capture_output=True, text=True, **who)
    return str(said.stdout)


def _is_readable(folder: Path) -> bool:
    """Whether an unprivileged user may list a folder."""
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in (folder, *folder.parents))
