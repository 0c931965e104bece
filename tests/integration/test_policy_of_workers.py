"""The worker enforces the operator's lists, whatever the client that submits has checked."""

import socket

import pytest

from orchestrator.callbacks import http_post
from orchestrator.callbacks.callback import CallbackError, Callbacks
from orchestrator.client.client import Client
from orchestrator.config.tables import PoolPolicy
from orchestrator.model.definition_parts import Callback
from orchestrator.model.states import Status
from orchestrator.policy.policy import Policy
from orchestrator.policy.rules import PolicyRefused
from tests.hostile_server import stranger
from tests.integration.test_callback import BODY
from tests.jobs_support import Deployment, ScriptedDeployment, python_job
from tests.receiver import receiver

NONE_LISTED = PoolPolicy(masters=("yarn",), callback_hosts=("hooks.example.org",))


@pytest.fixture
def deployment(scripted_deployment: ScriptedDeployment) -> Deployment:
    scripted_deployment.settings = scripted_deployment.settings.model_copy(
        update={"policy": {"*": NONE_LISTED}}
    )
    return scripted_deployment


def test_a_job_that_no_client_has_checked_fails_for_good_and_names_the_rule(deployment: Deployment) -> None:
    deployment.worker()
    detail = deployment.wait(deployment.submit("pass", retry={"attempts": 3, "on": ["submission", "user"]}))
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.attempts == []
    error = detail.job.error
    assert error is not None
    assert (error.error_class, error.type) == ("definition", "RefusedSubmission")
    assert 'by the setting policy."*".masters (allowed: yarn)' in error.message


def test_the_end_of_a_job_is_not_reported_to_a_receiver_that_is_not_listed(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.settings = deployment.settings.model_copy(
        update={"policy": {"*": PoolPolicy(callback_hosts=("hooks.example.org",))}}
    )
    with receiver() as there:
        monkeypatch.setenv("RECEIVER", there.url)  # a file of the worker: the client cannot check it
        deployment.worker()
        job = deployment.wait(
            deployment.submit("pass", callback={"url": "${env:RECEIVER}", "attempts": 5})
        ).job
    assert there.requests == []
    assert job.status is Status.SUCCESS
    assert job.callback.attempts == 1  # the other four tries would end in the same way
    assert job.callback.error is not None
    assert "by the setting policy" in job.callback.error


@pytest.mark.parametrize(
    "policy", [{}, {"*": PoolPolicy(environment=("DATA_*",))}], ids=["no list", "listed"]
)
def test_a_refused_job_brings_no_variable_of_the_worker_to_its_receiver(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, policy: dict[str, PoolPolicy]
) -> None:
    """No client has checked the job, and it reports its end as each job does."""
    monkeypatch.setenv("TOKEN_OF_THE_WORKER", "s3cret-word")
    deployment.client = Client(deployment.queues, Policy({"*": PoolPolicy(environment=("*",))}))
    deployment.settings = deployment.settings.model_copy(update={"policy": policy})
    with receiver() as there:
        deployment.worker()
        url = f"{there.url}/${{env:TOKEN_OF_THE_WORKER}}"
        job = deployment.wait(deployment.submit("pass", callback={"url": url, "attempts": 5})).job
    assert there.requests == []
    assert job.status is Status.ERROR_FAIL
    assert job.callback.attempts == 1
    assert "TOKEN_OF_THE_WORKER" in str(job.callback.error)


def test_a_submission_against_the_policy_in_the_settings_is_refused_before_anything_is_enqueued(
    deployment: Deployment,
) -> None:
    client = Client(deployment.queues, Policy({"*": NONE_LISTED}))
    with pytest.raises(PolicyRefused, match="the master 'spark://evil:7077' is refused"):
        client.submit(python_job("pass", spark={"master": "spark://evil:7077"}))
    assert list(client.list()) == []


# ---------------------------------------------------------------------- addresses of receivers
def test_a_receiver_at_the_address_of_a_cloud_s_metadata_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No test can bind the real address: that of the server counts as one here.
    monkeypatch.setattr(http_post, "is_metadata", lambda address: address == "127.0.0.1")
    with stranger() as there:
        port = there.url.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1"):
            with pytest.raises(CallbackError, match="that of a cloud's metadata"):
                Callbacks().call(Callback(url=f"http://{host}:{port}/latest/meta-data"), BODY)
    assert there.seen == []


def test_a_pattern_opens_no_receiver_on_the_worker_s_host_but_its_name_does() -> None:
    with receiver() as there:
        callback = Callback(url=there.url.replace("127.0.0.1", "localhost"))
        for pattern in ("*", "local*"):
            policy = Policy({"*": PoolPolicy(callback_hosts=(pattern,))})
            with pytest.raises(CallbackError, match="the worker's own host"):
                Callbacks(check=policy.check_callback).call(callback, BODY)
        assert there.requests == []
        policy = Policy({"*": PoolPolicy(callback_hosts=("localhost",))})
        Callbacks(check=policy.check_callback).call(callback, BODY)
        assert len(there.requests) == 1


def test_a_name_with_one_forbidden_address_is_not_called_at_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(*_: object, **__: object) -> list[object]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.1", "169.254.1.1")
        ]

    with receiver() as there:
        port = int(there.url.split(":")[2].partition("/")[0])
        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        with pytest.raises(CallbackError, match="that of a cloud's metadata"):
            Callbacks().call(Callback(url=f"http://two.example.org:{port}/x"), BODY)
    assert there.requests == []
