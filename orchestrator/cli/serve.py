"""The commands that run until a signal, `up`, `worker` and `zookeeper`; and ZooKeeper's zkCli."""

import contextlib
import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.connect import command_session, reached_zookeeper, with_servers
from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.options import MetricsAddress, Quiet, Slots, Verbose, Verbosity, parse_pools
from orchestrator.cli.output import stderr_console
from orchestrator.cli.own_server import zookeeper_for_others
from orchestrator.client.client import Client
from orchestrator.compose import build_client, build_worker, find_zookeeper, open_logs, open_session
from orchestrator.config.directories import prepare_directories
from orchestrator.config.settings import Settings, load_settings
from orchestrator.config.sources import PREFIX
from orchestrator.logs.console import log_to_stderr, mask_uncaught
from orchestrator.metrics.server import serving
from orchestrator.model.errors import AlreadyEnded
from orchestrator.model.states import Queue
from orchestrator.worker.worker import Worker
from queues import InvalidEnsemble, ItemNotFound, Session, Unreachable, find_java, run_zkcli

_CHECK_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_SETTLE_SECONDS = 20.0  # after the two kill signals: verdicts, moves, the shutdown of Spark
_ON_THEIR_WAY = (Queue.RUNNING, Queue.SUCCESS, Queue.FAIL, Queue.KILL)
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="The port of ZooKeeper; default: a free port.")
]


def up(
    port: Port = None,
    slots: Slots = None,
    metrics_address: MetricsAddress = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run ZooKeeper and a worker in the foreground, for development; commands in other terminals find them.

    Ctrl-C ends both: running jobs are killed and end as KILL, waiting jobs stay for the next `up`. Streams
    get some seconds to end after their current micro-batch, as SUCCESS.

    Example: orchestrator up --slots 2
    """
    interrupt = Interrupt.install()
    settings = _settings(slots, metrics_address)
    find_java()
    _log(verbose, quiet)
    _say(quiet, f"ZooKeeper and a worker start, with their data in {settings.state_dir}")
    with ExitStack() as stack:
        settings, check_zookeeper = stack.enter_context(zookeeper_for_others(settings, owner="up", port=port))
        hosts = settings.zookeeper_hosts
        logs = stack.enter_context(open_logs(settings))
        session = stack.enter_context(open_session(settings, hosts))
        served = build_worker(session, settings, owned=True, logs=logs)
        stack.enter_context(serving(settings.metrics, served.metrics.registry, served.probes))
        served.start()
        stack.callback(served.drain)
        _say(quiet, f"ZooKeeper and a worker run at {hosts}; Ctrl-C ends them. In another terminal:")
        _say(quiet, "  orchestrator job submit examples/flights.sql --wait")
        while not interrupt.wait(_CHECK_SECONDS):
            check_zookeeper()
        served.stop_accepting()
        _stop_running_jobs(build_client(session, settings), served, quiet, grace=settings.kill_grace)
    raise typer.Exit(interrupt.exit_code)


def _stop_running_jobs(client: Client, served: Worker, quiet: bool, *, grace: float) -> None:  # typer's flag
    """Kill the running jobs and wait for their end: their ZooKeeper is about to stop.

    For `grace` seconds streams may end after their current micro-batch.
    """
    begun, limit = time.monotonic(), 3 * grace + _SETTLE_SECONDS
    asked = dict[str, bool]()  # by id, whether it was a graceful request
    while (passed := time.monotonic() - begun) < limit:
        running = [job for job in client.jobs(_ON_THEIR_WAY) if job.is_readable]
        if not running and not served.is_busy():
            return
        for job in running:
            graceful = bool(job.mode) and passed < grace
            if asked.get(job.id) in {False, graceful}:
                continue
            asked[job.id] = graceful
            _say(quiet, f"stopping {job.id}" + (" after its current micro-batch" if graceful else ""))
            with contextlib.suppress(AlreadyEnded, ItemNotFound):
                client.kill(job.id, graceful=graceful)
        threading.Event().wait(_LOOK_SECONDS)
    _say(quiet, f"some jobs have not ended within {limit:.0f} s; their drivers end with this process")


def worker(
    pool: list[str] | None, slots: int | None, metrics_address: str | None, verbose: int, quiet: bool
) -> None:
    """Run a worker until a signal, or until it has drained on request: the body of the command."""
    interrupt = Interrupt.install()
    interrupt.force_when_repeated()
    settings, pools = _settings(slots, metrics_address), parse_pools(pool)
    find_java()
    prepare_directories(settings)
    _log(verbose, quiet)
    with ExitStack() as stack:
        with interrupt.breaking():  # a server that starts is waited for
            settings = find_zookeeper(settings)
        logs = stack.enter_context(open_logs(settings))
        with interrupt.breaking():
            session = _session_of_worker(settings, stack, quiet)
        served = build_worker(session, settings, pools=pools, logs=logs)
        stack.enter_context(serving(settings.metrics, served.metrics.registry, served.probes))
        served.start()
        while not interrupt.wait(_CHECK_SECONDS) and not served.is_drained:
            pass
        served.drain()
    if interrupt.is_set() and not interrupt.is_terminate:
        raise typer.Exit(interrupt.exit_code)


def _session_of_worker(settings: Settings, stack: ExitStack, quiet: bool) -> Session:  # typer's flag
    """A session; the servers of an ensemble may start at the same time. Raises Unreachable, AccessDenied."""
    began, limit = time.monotonic(), settings.worker_connect_timeout
    while True:
        try:
            return stack.enter_context(open_session(settings, settings.zookeeper_hosts))
        except Unreachable as error:
            waited = time.monotonic() - began
            if waited + settings.connect_timeout / 2 >= limit:  # another try would end too late
                raise with_servers(error, waited) from error
            _say(
                quiet,
                f"waiting for ZooKeeper at {error.hosts} ({error.origin}): no answer for {waited:.0f} s; "
                f"this worker gives up after {limit:.0f} s",
            )


def zookeeper(
    port: Port = None,
    ensemble: Annotated[
        str | None,
        typer.Option(
            metavar="HOST[:PORTS],...",
            help="Be one server of these; PORTS are PORT:QUORUM:ELECTION, default 2181:2888:3888.",
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--id", min=1, help="Which of them; default: the one with an address of this host."),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The key and the certificate of all servers of the ensemble, PEM."),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The password that clients of the ensemble log in with."),
    ] = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run a ZooKeeper server in the foreground, from the jars of PySpark: alone, or as one of an ensemble.

    An ensemble of three serves while two of them run. All servers have the same two files.

    Example: orchestrator zookeeper --ensemble zk1,zk2,zk3 --certificate ensemble.pem --password-file password
    """
    interrupt = Interrupt.install()
    settings = load_settings()
    _log(verbose, quiet)
    if ensemble is None:
        if number is not None or certificate is not None or password_file is not None:
            raise InvalidEnsemble("--id, --certificate and --password-file are for a server of an --ensemble")
        _serve_alone(settings, port, interrupt, quiet)
    else:
        # Loaded where it is used: it needs TLS and hashes, which are slow to load.
        from orchestrator.cli.ensemble import read_ensemble, serve_member  # noqa: PLC0415

        if port is not None:
            raise InvalidEnsemble("the ports of an ensemble stand in --ensemble, not in --port")
        described = read_ensemble(ensemble, number, certificate, password_file)
        prepare_directories(settings)
        serve_member(settings, described, interrupt, partial(_say, quiet))
    if not interrupt.is_terminate:
        raise typer.Exit(interrupt.exit_code)


def _serve_alone(
    settings: Settings, port: int | None, interrupt: Interrupt, quiet: bool
) -> None:  # typer's flag
    _say(quiet, f"ZooKeeper starts, with its data in {settings.zookeeper_dir}")
    with zookeeper_for_others(settings, owner="zookeeper", port=port) as (found, check):
        _say(quiet, f"ZooKeeper runs at {found.zookeeper_hosts}; Ctrl-C ends it. Commands with this state")
        _say(quiet, "directory find it and log in automatically. For other programs of this user:")
        for line in _exports(found):
            _say(quiet, f"  {line}")
        while not interrupt.wait(_CHECK_SECONDS):
            check()


def zkcli(context: typer.Context) -> None:
    """Run ZooKeeper's own zkCli, connected and logged in.

    Example: orchestrator zkcli ls /orchestrator/queues
    """
    with reached_zookeeper(load_settings()) as found:
        with command_session(found) as session:
            reached = session.settings  # an unreachable server fails here; zkCli would retry forever
        code = run_zkcli(reached, context.args)
    raise typer.Exit(code)


def _exports(found: Settings) -> Iterator[str]:
    yield f"export ZOOKEEPER_HOSTS={found.zookeeper_hosts}"
    if (login := found.zookeeper_login) is not None:
        prefix, file = f"export {PREFIX}ZOOKEEPER_", shlex.quote(str(login.password_file))
        yield f"{prefix}LOGIN__SCHEME={login.scheme} {prefix[7:]}LOGIN__USER={login.user}"
        yield f"{prefix}LOGIN__PASSWORD_FILE={file} {prefix[7:]}ACL={found.acl}"
        yield f"{prefix}LOGIN__OWN_SERVER=true"
        yield f"# plain zkCli: addauth {login.scheme} {login.user}:PASSWORD, from that file"


def _settings(slots: int | None, metrics_address: str | None) -> Settings:
    return load_settings(
        slots=slots, metrics=None if metrics_address is None else {"address": metrics_address}
    )


def _log(verbose: int, quiet: bool) -> None:  # typer's flag
    if not verbose and not quiet and not Verbosity.verbose:
        log_to_stderr("INFO")
    mask_uncaught()


def _say(quiet: bool, words: str) -> None:  # typer's flag
    if not quiet:
        stderr_console().print(words, markup=False)
