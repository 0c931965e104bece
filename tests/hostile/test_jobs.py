"""Hostile jobs: what a program and a script reach from the environment of their worker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.model.states import Status
from queues.session import Acl
from tests.acceptance.support import Shell
from tests.hostile.test_another_user import ROW, started, with_its_own_server
from tests.integration.test_driver_rights import closed_settings, tree
from tests.integration.test_run_as import POOL, TRY, Scene, base, needs_root
from tests.jobs_support import Deployment, waits_for
from tests.servers.secured import Secured
from tests.waiting import wait_until
from tests.warm_support import WarmHouse

__all__ = ["base"]
CHECKOUT = str(Path(__file__).parents[2])
WAIT_S = 60

# ---------------------------------------------------------------------- the nodes of others
TOUCHES_ALL_NODES = """
import json, os, sys
sys.path.insert(0, {checkout!r})
from kazoo.client import KazooClient
from tests.hostile.powers import powers
zookeeper = json.load(open(os.environ["ORCHESTRATOR_RUN_DIR"] + "/plan.json"))["zookeeper"]
hosts, mark, folder = zookeeper["hosts"].partition("/")
def words(login):
    return login["password"] or open(login["password_file"]).read().rstrip()
login, sasl = zookeeper.get("digest"), zookeeper.get("sasl")
auth = [("digest", login["user"] + ":" + words(login))] if login else None
if sasl:
    sasl = {{"mechanism": "DIGEST-MD5", "username": sasl["user"], "password": words(sasl)}}
client = KazooClient(hosts, auth_data=auth, sasl_options=sasl)
client.start(timeout=30)
nodes = json.load(open({nodes!r}))
found = {{path: sorted(powers(client, mark + folder + path)) for path in nodes}}
client.stop()
with open({found!r} + "~", "w") as file:
    json.dump(found, file)
os.rename({found!r} + "~", {found!r})
"""


@pytest.mark.parametrize("acl", Acl)
def test_a_program_can_touch_other_nodes_only_where_acl_is_open(
    secured: Secured, tmp_path: Path, process_mark: str, acl: Acl
) -> None:
    assert process_mark
    settings = closed_settings(secured, tmp_path, "digest").model_copy(update={"zookeeper_acl": acl})
    deployment = Deployment(settings)
    listed, found, go_on = tmp_path / "nodes", tmp_path / "found", tmp_path / "go on"
    try:
        deployment.worker(slots=2)
        victim = deployment.submit(waits_for(go_on), name="victim")
        wait_until(lambda: deployment.client.get(victim).attempt, WAIT_S, "the victim runs")
        nodes = list(tree(deployment.queues.session, settings.root))
        listed.write_text(json.dumps(nodes), "utf-8")
        program = TOUCHES_ALL_NODES.format(checkout=CHECKOUT, nodes=str(listed), found=str(found))
        hostile = deployment.wait(deployment.submit(program, name="hostile"))
        assert hostile.job.status is Status.SUCCESS, hostile.job.error
        go_on.touch()
        assert deployment.wait(victim).job.status is Status.SUCCESS
    finally:
        deployment.close()
    touched = {path for path, can in json.loads(found.read_text("utf-8")).items() if can}
    definitions = {path for path in nodes if path.endswith(f"{victim}/definition")}
    assert len(definitions) == 1
    assert touched == set() if acl is Acl.CREATOR else touched > definitions


@pytest.mark.parametrize("command", ["run", "up"])
def test_a_program_of_run_and_up_can_touch_no_node_but_its_attempt(shell: Shell, command: str) -> None:
    shell.use_stand_ins()
    listed, found = shell.directory / "nodes", shell.directory / "found"
    program = TOUCHES_ALL_NODES.format(checkout=CHECKOUT, nodes=str(listed), found=str(found))
    running, go_on = started(shell, command, then=program)
    target = with_its_own_server(shell, running)
    listed.write_text(json.dumps(target.nodes), "utf-8")
    go_on.touch()
    wait_until(found.exists, WAIT_S, "the program has tried each node")
    touched = {path for path, can in json.loads(found.read_text("utf-8")).items() if can}
    assert any("/attempt-1-" in path for path in touched), "its login has rights on its attempt"
    assert [path for path in touched if "/attempt-1-" not in path] == []


# ---------------------------------------------------------------------- the host of the worker
@pytest.fixture
def scene(base: Path) -> Iterator[Scene]:
    made = Scene(base)
    yield made
    made.close()


@needs_root
def test_without_run_as_the_program_that_reached_nothing_reaches_all(
    scene: Scene,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Control of `test_a_hostile_driver_reaches_nothing_of_the_worker_and_of_other_runs`."""
    secret = base / "password"
    secret.write_text("s3cret", "utf-8")
    secret.chmod(0o600)
    other = scene.submit("open('outcome.json', 'w').write('{}')", pool="of-the-worker")
    neighbour = scene.users.folder / POOL / "another-run.of-this-user"
    neighbour.mkdir(mode=0o700, parents=True)
    with subprocess.Popen(
        ["/bin/sleep", "600"]
    ) as worker:  # it is traced; tracing this process would stop it
        try:
            monkeypatch.setenv("LC_WORKER", str(worker.pid))
            monkeypatch.setenv("LC_PATHS", f"{scene.state}:{secret}:{neighbour}")
            monkeypatch.setenv("LC_RUN", str(other.path))
            monkeypatch.setenv("LC_SHIM", "")
            monkeypatch.setenv("USER", "root")
            found = scene.ended(scene.submit(TRY, pool="of-the-worker"))
        finally:
            worker.kill()
    answers = dict(found.outcome or {})
    assert answers["password"] == repr("s3cret")
    tried = ("state", "write", "run", "own run", "environ", "memory", "signal", "shim", "root")
    assert [name for name in tried if answers[name] == "PermissionError"] == []
    assert answers["ptrace"] == 0


TRICKS = {
    "a link to a file of the worker": "os.symlink({secret!r}, path)",
    "a queue of bytes that is never written": "os.mkfifo(path)",
    "a file without end": "open(path, 'w').truncate(1 << 40)",
}
PLANTS = """
import os
names = "outcome.json application.json exit.json pids.json stdout.log stderr.log spark.log"
for name in names.split():
    path = os.path.join(os.environ["ORCHESTRATOR_RUN_DIR"], name)
    try:
        os.remove(path)
    except OSError:
        pass
    {trick}
os._exit(0)
"""


def test_what_a_program_plants_in_its_run_directory_is_not_followed_waited_for_or_believed(
    deployment: Deployment, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text('{"application_id": "s3cret-of-the-worker"}', "utf-8")
    deployment.worker(slots=len(TRICKS))
    planted = [
        deployment.submit(PLANTS.format(trick=trick.format(secret=str(secret)))) for trick in TRICKS.values()
    ]
    for job_id in planted:
        detail = deployment.wait(job_id)
        assert detail.job.status is Status.ERROR_FAIL, detail
        assert "s3cret" not in f"{detail}"
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS


LIES: tuple[dict[str, object], ...] = (
    {},
    {"state": "intent"},
    {"state": "succeeded", "tables": 7},
    {"state": "failed", "error": {"class": 1}},
)
LEAVES = """
import json, os
lie = json.loads({lie!r})
lie |= {{"metrics": {{"x": "A" * 3_000_000}}}} if lie.get("state") == "intent" else {{}}
with open(os.path.join(os.environ["ORCHESTRATOR_RUN_DIR"], "outcome.json"), "w") as file:
    json.dump(lie, file)
os._exit(0)
"""


def test_a_program_that_forges_an_outcome_ends_and_frees_its_slot(deployment: Deployment) -> None:
    deployment.worker(slots=1)
    hostile = [deployment.submit(LEAVES.format(lie=json.dumps(lie))) for lie in LIES]
    for job_id in hostile:
        assert deployment.wait(job_id).job.status is Status.ERROR_FAIL
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS


# ---------------------------------------------------------------------- the JVM of others
# The sessions are new ones, as for scripts. A tenant that leaves cancels all jobs of its name, and other
# tests use the server too: no other test has these names.
TENANT = """
import sys
from pathlib import Path
from spark_runner.driver.jvm import WarmJvm
jvm = WarmJvm(Path(sys.argv[1]), "hostile-keeps")
jvm.enter()
spark = jvm.session().newSession()
spark.range(3).selectExpr(f"concat('{sys.argv[2]}', id) AS row").createTempView("precious")
spark.sql("CACHE TABLE precious")
print(spark.sql("SELECT * FROM precious").collect(), flush=True)
sys.stdin.read()
spark.catalog.clearCache()
jvm.leave()
"""
OTHER_TENANT = """
import json, sys
from pathlib import Path
from spark_runner.driver.jvm import WarmJvm
jvm = WarmJvm(Path(sys.argv[1]), "hostile-asks")
jvm.enter()
spark = jvm.session().newSession()
said = {}
for query in sys.argv[2:]:
    try:
        said[query] = str(spark.sql(query).collect())
    except Exception as error:
        said[query] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
jvm.leave()
"""
QUERIES = (
    "SELECT * FROM precious",
    "SHOW VIEWS",
    "SHOW TABLES IN global_temp",
    "SELECT * FROM global_temp.precious",
    "SET -v",
    "SELECT reflect('java.lang.System', 'getenv', 'PATH')",
)


@pytest.mark.spark
def test_a_script_in_a_warm_server_reads_no_data_of_another(warm: WarmHouse) -> None:
    server = warm.wait_open()
    secret = server.gateway().secret
    command = [sys.executable, "-c", TENANT, str(server.path), ROW]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tenant:
        assert tenant.stdout is not None
        assert ROW in tenant.stdout.readline(), "the owner can read its rows"
        asked = [sys.executable, "-c", OTHER_TENANT, str(server.path), *QUERIES]
        said = json.loads(subprocess.check_output(asked, text=True))
        tenant.communicate()
    assert {*said} == {*QUERIES}
    for query, answer in said.items():
        assert ROW not in answer, query
        assert "precious" not in answer or "TABLE_OR_VIEW_NOT_FOUND" in answer, (query, answer)
        assert secret not in answer, query
        assert os.environ["PATH"] not in answer, query
