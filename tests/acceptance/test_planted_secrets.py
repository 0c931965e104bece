"""Secrets of each kind are planted in real runs: nothing outside the processes shows one.

A definition is the user's own text, so its node in ZooKeeper is not checked: see docs/logs.md.
"""

import json
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from queues.session import Session, SessionSettings
from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK, SPARK_TIMEOUT_S, Shell
from tests.jobs_support import command_line
from tests.receiver import receiver
from tests.secret_kinds import KINDS
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CONF, VARIABLE, ARGUMENT, WORD, LABEL, ENVIRONMENT, PATH = (
    f"word-of-the-{name}-Q7tR2mP4"
    for name in ("conf", "variable", "argument", "word", "label", "environment", "path")
)
OF_SETTINGS = (CONF, VARIABLE, ARGUMENT, WORD, LABEL, ENVIRONMENT, PATH)
TRACES = [*(trace for kind in KINDS.values() for trace in kind.traces), *OF_SETTINGS]

PROGRAM = """
import json, logging, sys
texts = json.load(open(sys.argv[1]))
for number, text in enumerate(texts):
    print(f"line {number}: {text}")
    print(f"error {number}: {text}", file=sys.stderr)
    logging.getLogger("planted").warning("%s", text)
print("started with", *sys.argv[2:])
print(sys.argv[4], file=sys.stderr)
raise RuntimeError("it failed with " + " and ".join(texts))
"""
SCRIPT = """
CREATE TABLE shown USING print;
INSERT INTO shown SELECT raise_error('the server refuses ${db_password}');
"""


def definitions(shell: Shell, url: str) -> list[Path]:
    texts = [*(kind.text for kind in KINDS.values()), f"the conf has {CONF}"]
    planted = shell.write("planted.json", json.dumps(texts))
    planted.chmod(0o600)
    spark = {**SPARK, "conf": {"spark.planted.password": CONF, "spark.log.level": "INFO"}}
    common = {
        "labels": {"api_token": LABEL},
        "retry": {"attempts": 1},
        "callback": {"url": f"{url}/{PATH}?token={PATH}", "attempts": 1},
    }
    arguments = [str(planted), f"--db-password={ARGUMENT}", "--api-token", WORD]
    program = {"name": "program", "python": {"text": PROGRAM}, "arguments": arguments}
    script = {"name": "script", "script": {"text": SCRIPT}, "variables": {"db_password": VARIABLE}}
    return [
        shell.write(f"{each['name']}.yaml", yaml.safe_dump({**each, **common, "spark": spark}))
        for each in (program, script)
    ]


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """Collects the command lines of all processes of this machine, as any user sees them."""
    seen, ending = set[str](), threading.Event()

    def look() -> None:
        while not ending.wait(0.2):
            for process in psutil.process_iter():
                seen.add(" ".join(command_line(process)))

    thread = threading.Thread(target=look)
    thread.start()
    yield seen
    ending.set()
    thread.join()


def nodes(shell: Shell) -> Iterator[tuple[str, str]]:
    """All data of ZooKeeper below the root, except the definitions."""
    with Session(SessionSettings(shell.environment["ZOOKEEPER_HOSTS"])) as session:
        waiting = [shell.environment["ORCHESTRATOR_ROOT"]]
        while waiting:
            path = waiting.pop()
            found = session.get(path)
            if found is not None and not path.endswith(("/definition", "/plan")):
                yield path, found[0].decode("utf-8", "replace")
            waiting += [f"{path}/{name}" for name in session.children(path) or ()]


def files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes().decode("utf-8", "replace")


def is_open_to_others(path: Path, below: Path) -> bool:
    """Whether another user can read a file, given the modes of the folders below `below`."""
    if not path.stat().st_mode & stat.S_IROTH:
        return False
    return all(
        parent.stat().st_mode & stat.S_IXOTH for parent in path.parents if parent.is_relative_to(below)
    )


def test_secrets_of_each_kind_leave_the_processes_nowhere(shared_shell: Shell) -> None:
    shell = shared_shell
    shown: dict[str, str] = {}
    shell.environment |= {"PLANTED_API_TOKEN": ENVIRONMENT, "ORCHESTRATOR_RETENTION": "1h"}
    config = shell.write("config.toml", f'[spark.other.conf]\n"spark.x.secret" = "{CONF}"\n')
    shell.environment["ORCHESTRATOR_CONFIG"] = str(config)
    with receiver() as there, command_lines() as lines:
        worker = shell.start("worker", "--slots", "2", "-v")
        worker.wait_for_words("2 slots", COMMAND_TIMEOUT_S)
        url = there.url.removesuffix("/ended").replace("//", f"//ada:{PATH}@")
        for file in definitions(shell, url):
            submitted = shell.type("job", "submit", str(file), "--id", file.stem)
            assert submitted.code == 0, submitted.stderr
            assert "seems to hold a secret" in submitted.stderr
            shown[f"submit {file.stem}"] = submitted.stdout + submitted.stderr
        there.wait_requests(2, 2 * SPARK_TIMEOUT_S)
        for job_id in ("program", "script"):
            shell.type("job", "wait", job_id, "--timeout", "60s")
    for request in there.requests:
        shown[f"callback {request.body['id']}"] = request.data.decode()
    assert "RuntimeError" in shell.type("job", "show", "program").stdout
    for job_id in ("program", "script"):
        shows: tuple[tuple[str, ...], ...] = (
            ("job", "show", job_id),
            ("job", "show", job_id, "-o", "json"),
            ("job", "logs", job_id),
            ("job", "history", job_id),
            ("job", "history", job_id, "-o", "json"),
        )
        for command in shows:
            ended = shell.type(*command)
            assert ended.code == 0, ended.stderr
            shown[" ".join(command)] = ended.stdout + ended.stderr
    others: tuple[tuple[str, ...], ...] = (
        ("job", "list", "-o", "json"),
        ("job", "list"),
        ("config", "show"),
        ("config", "show", "-o", "json"),
        ("cluster", "status", "-o", "json"),
        ("logs", "tail", "-n", "1000"),
        ("job", "show", "no-such-job", "-v"),
    )
    for command in others:
        ended = shell.type(*command)
        shown[" ".join(command)] = ended.stdout + ended.stderr
    assert "line 3: " in shown["job logs program"]
    shown |= {f"ZooKeeper {path}": text for path, text in nodes(shell)}
    shown |= {f"command line {line[:80]}": line for line in lines}
    for job_id in ("program", "script"):
        assert shell.type("queue", "requeue", job_id, "--delay", "0s").code == 0
    archive = shell.state_dir / "archive"
    wait_until(lambda: sum(text.count("\n") for _, text in files(archive)) >= 2, 60, "both jobs are archived")
    worker.terminate()
    worker.wait()
    shown |= {"stdout of the worker": worker.stdout, "stderr of the worker": worker.stderr}
    shown |= {path: text for folder in ("logs", "archive") for path, text in files(shell.state_dir / folder)}
    shown |= {
        path: text for path, text in files(shell.state_dir) if is_open_to_others(Path(path), shell.state_dir)
    }
    found = [
        (source, trace, _around(text, trace))
        for source, text in shown.items()
        for trace in TRACES
        if trace in text
    ]
    assert found == []
    for what in ("ZooKeeper", "callback", "command line", "/"):
        assert any(name.startswith(what) for name in shown), what


def _around(text: str, trace: str) -> str:
    at = text.index(trace)
    return text[max(0, at - 200) : at + 100]
