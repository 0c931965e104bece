"""Unsafe settings: secrets in files that other users may read, logins without TLS, an open ZooKeeper tree."""

import os
import stat
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from orchestrator.config.listening import is_loopback
from orchestrator.config.settings import Settings, config_file
from orchestrator.config.spark_defaults import pool_confs
from orchestrator.logs.record.redaction import secrets_in
from queues import Acl


class Exposure(StrEnum):
    """The kind of an exposure to other users."""

    READABLE_FILE = "readable-secret"
    NO_TLS = "unencrypted-login"
    OPEN_TREE = "open-tree"


class Caution(NamedTuple):
    """One exposure to other users: the file or setting, the kind, and the remedy."""

    exposure: Exposure
    place: str
    what: str
    remedy: str


def cautions(settings: Settings) -> Iterator[Caution]:
    """The exposures of the settings in force."""
    for name, file in _secret_files(settings):
        if readers := readers_of(file):
            what = f"{name} is in {file}, which {readers} may read"
            yield Caution(Exposure.READABLE_FILE, str(file), what, f"`chmod go= {file}`")
    login, group = settings.zookeeper_login, settings.zookeeper_group
    if settings.zookeeper_tls is None and not settings.is_zookeeper_on_loopback:
        sent = [] if login is None else [("zookeeper_login", login.user, login.scheme)]
        sent += [] if group is None else [("zookeeper_group", group.user, "digest")]
        for name, user, scheme in sent:
            what = f"the login of {user} ({scheme}) is sent to {settings.zookeeper_hosts} without TLS"
            yield Caution(Exposure.NO_TLS, name, what, "set zookeeper_tls")
    is_elsewhere = settings.zookeeper_hosts and not settings.is_zookeeper_on_loopback
    if is_elsewhere and settings.acl is Acl.OPEN:
        what = (
            f"every user who can reach {settings.zookeeper_hosts} may read and change every job, and run "
            "code as the user of the drivers"
        )
        remedy = "set zookeeper_login, with zookeeper_acl = 'creator', then run `cluster doctor --fix`"
        yield Caution(Exposure.OPEN_TREE, "zookeeper_acl", what, remedy)
    for name, key, urls in (
        ("logs", settings.logs.key_file, settings.logs.urls),
        ("archive", settings.archive.key_file, [settings.archive.url]),
    ):
        plain = [url for url in urls if url.startswith("http://") and not is_loopback(_host(url))]
        if key is not None and plain:
            what = f"the key in {key} is sent to {', '.join(plain)} without TLS"
            yield Caution(Exposure.NO_TLS, f"{name}.url", what, "use https")


def _secret_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    login, tls, metrics = settings.zookeeper_login, settings.zookeeper_tls, settings.metrics
    group = settings.zookeeper_group
    named: list[tuple[str, Path | None]] = [
        ("the password of zookeeper_login", None if login is None else login.password_file),
        ("the password of zookeeper_group", None if group is None else group.password_file),
        ("the key of zookeeper_tls", None if tls is None else tls.key_file or tls.certificate_file),
        ("the key of logs", settings.logs.key_file),
        ("the key of archive", settings.archive.key_file),
        ("the token of metrics", metrics.token_file),
        ("the key of metrics", metrics.key_file or metrics.certificate_file),
    ]
    if any(secrets_in(conf) for conf in pool_confs(settings.spark)):
        named.append(("a secret of Spark's settings", config_file()))
    yield from ((name, file) for name, file in named if file is not None)


def readers_of(file: Path) -> str:
    """Who else may read a file with a secret of this user; empty if none may."""
    try:
        found = file.stat()
    except OSError:  # its reader reports the error
        return ""
    if found.st_mode & stat.S_IROTH:
        return "every user of this host"
    # A file of another owner, for example root, may be readable for this user only by its group.
    return "its group" if found.st_mode & stat.S_IRGRP and found.st_uid == os.geteuid() else ""


def _host(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 - lazy: few settings have a key

    return urlsplit(url).hostname or ""
