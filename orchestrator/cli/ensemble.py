"""One server of an ensemble in the foreground: `orchestrator zookeeper --ensemble`."""

import json
import shlex
import socket
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.cli.folding import say
from orchestrator.cli.interrupt import Interrupt
from orchestrator.config.cautions import readers_of
from orchestrator.config.settings import Settings
from queues import (
    EmbeddedZooKeeper,
    Ensemble,
    InvalidEnsemble,
    ServerEnded,
    ServerStartFailed,
    ensemble_login,
    own_id,
    parse_members,
    private_directory,
)

FOLDER = "ensemble"
"""Its data, in the state directory: apart from the server of `run` and `up`, whose data is another tree."""

_ANY_FILE = "FILE"  # in what is printed, where no file can be named
_CHECK_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_STRANGERS_SECONDS = 5.0  # between two looks at the certificates of the others, while this server waits
_LOST_SECONDS = 10.0  # an election takes less


def read_ensemble(
    members: str, number: int | None, certificate: Path | None, password_file: Path | None
) -> Ensemble:
    """The ensemble that the options describe; raises InvalidEnsemble."""
    parsed = parse_members(members)
    if certificate is None or password_file is None:
        raise InvalidEnsemble(
            "--ensemble needs --certificate and --password-file, the same on all servers: what other hosts "
            "reach is encrypted and asks for a login"
        )
    if number is None:
        number = own_id(parsed, socket.gethostname())
    if number is None:
        raise InvalidEnsemble(
            f"not exactly one server of the ensemble has the name of this host, {socket.gethostname()}, or "
            f"one of its addresses; say which one this is by --id, from 1 to {len(parsed)}"
        )
    if not 1 <= number <= len(parsed):
        raise InvalidEnsemble(f"--id is {number}, and --ensemble names servers 1 to {len(parsed)}")
    return Ensemble(parsed, number, certificate.absolute(), ensemble_login(password_file.absolute()))


def serve_member(
    settings: Settings, ensemble: Ensemble, interrupt: Interrupt, say: Callable[[str], None]
) -> None:
    """Run the server until a signal; raises ServerEnded, and ServerStartFailed if it cannot be a member."""
    _warn_of_readers(ensemble)
    data_dir = private_directory(settings.state_dir / FOLDER)
    server = EmbeddedZooKeeper(ensemble.config(data_dir, owner="zookeeper"))
    _refuse_strangers(ensemble)
    ensemble.check_ports()
    server.launch()
    try:
        if not _joined(server, ensemble, interrupt, say):
            return
        server.wait_until_serving()
        say(f"{_name(ensemble)} serves as {server.mode()}. Settings of workers and commands, in config.toml:")
        for line in client_settings(ensemble):
            say(f"  {line}")
        if client_certificate(ensemble) is None:
            say(f"{_ANY_FILE} has the certificate of the servers, never the key, which is theirs alone:")
            say(f"  openssl x509 -in {shlex.quote(str(ensemble.certificate_file))} -out {_ANY_FILE}")
        _watch(server, ensemble, interrupt, say)
    finally:
        server.stop()


def client_settings(ensemble: Ensemble) -> list[str]:
    """The lines of config.toml that clients of the ensemble need."""
    user, file = _quoted(ensemble.login.user), _quoted(ensemble.login.password_file)
    return [
        f"zookeeper_hosts = {_quoted(ensemble.hosts)}",
        f"zookeeper_tls = {{ca_file = {_quoted(client_certificate(ensemble) or _ANY_FILE)}}}",
        f"zookeeper_login = {{scheme = {_quoted('digest')}, user = {user}, password_file = {file}}}",
    ]


def client_certificate(ensemble: Ensemble) -> Path | None:
    """The certificate without the key, as deploy/make-secrets.sh writes it beside it; None without it."""
    file = ensemble.certificate_file.with_suffix(".crt")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return file if "BEGIN CERTIFICATE" in text and "PRIVATE KEY" not in text else None


def _joined(
    server: EmbeddedZooKeeper, ensemble: Ensemble, interrupt: Interrupt, say: Callable[[str], None]
) -> bool:
    """Wait until the ensemble has a leader; False after a signal."""
    others = ", ".join(member.address for _, member in ensemble.others())
    needed = len(ensemble.members) // 2
    look_at_others = time.monotonic() + _STRANGERS_SECONDS
    say(f"{_name(ensemble)} starts; it serves when {needed} more of {others} run{'s' if needed == 1 else ''}")
    while server.mode() is None:
        if not server.is_running():
            server.wait_until_serving()  # raises the error of its log
        if time.monotonic() > look_at_others:
            _refuse_strangers(ensemble)
            look_at_others = time.monotonic() + _STRANGERS_SECONDS
        if interrupt.wait(_LOOK_SECONDS):
            return False
    return True


def _watch(
    server: EmbeddedZooKeeper, ensemble: Ensemble, interrupt: Interrupt, say: Callable[[str], None]
) -> None:
    """Report each change of the role until a signal; raises ServerStartFailed when the server has ended."""
    role, since = server.mode(), time.monotonic()
    while not interrupt.wait(_CHECK_SECONDS):
        if not server.is_running():
            raise ServerEnded(f"ZooKeeper of {_name(ensemble)}", server.log_file)
        now = server.mode()
        if now is not None:
            since = time.monotonic()
        elif time.monotonic() - since < _LOST_SECONDS:
            continue
        if now != role:
            say(f"{_name(ensemble)} is now {now or 'without a majority of the servers, and does not serve'}")
            role = now


def _warn_of_readers(ensemble: Ensemble) -> None:
    for what, file in (("key", ensemble.certificate_file), ("password", ensemble.login.password_file)):
        if file is not None and (readers := readers_of(Path(file))):
            words = f"the {what} of the ensemble is in {file}, which {readers} may read; `chmod go= {file}`"
            say(f"warning: {words}")


def _refuse_strangers(ensemble: Ensemble) -> None:
    if strangers := ensemble.strangers():
        names = ", ".join(f"{member.host}:{member.election_port}" for member in strangers)
        raise ServerStartFailed(
            f"{names} runs with another certificate than {ensemble.certificate_file}: copy one file to all "
            "servers of the ensemble"
        )


def _name(ensemble: Ensemble) -> str:
    return f"server {ensemble.id} of {len(ensemble.members)} ({ensemble.own.address})"


def _quoted(value: str | Path) -> str:
    return json.dumps(str(value), ensure_ascii=False)  # a basic string of TOML
