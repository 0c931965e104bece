"""The field `requirements` of a definition: what it accepts, and the errors of what it refuses."""

import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.tables import PoolPolicy
from orchestrator.handlers.packages import UNPACKED, folder_of, with_packages
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.policy.policy import Policy
from orchestrator.policy.rules import PolicyRefused
from spark_runner.driver.job_packages import use_packages
from spark_runner.driver.outcome import of_error
from spark_runner.protocol.errors import PackagesUnusable, RefusedAtStart
from spark_runner.protocol.run_plan import PlannedPackages
from spark_runner.runners.base import SparkTarget
from spark_runner.runners.packages.environment import Environment
from spark_runner.runners.packages.pip_failures import failure
from spark_runner.runners.packages.python import TargetPython
from tests.run_plans import run_plan


def definition(*requirements: str, **fields: Any) -> Definition:
    return build_definition(
        {"name": "a", "python": "pass", "requirements": requirements, **fields}, "job.yaml"
    )


@pytest.mark.parametrize(
    "given",
    [
        "pandas",
        "pandas==2.3.3",
        "pyspark[sql] >= 4, < 5",
        'tomli>=2; python_version < "3.12"',
        "Acme_Words~=1.0",
    ],
)
def test_requirements_are_those_of_pep_508(given: str) -> None:
    (found,) = definition(given).requirements
    assert found.replace(" ", "") == given.replace(" ", "").replace(">=4,<5", "<5,>=4")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "is not a package"),
        ("--index-url=http://evil.example.org", "is an option of pip"),
        ("-e .", "is an option of pip"),
        (" -r x.txt", "is an option of pip"),
        ("evil @ https://example.org/evil.whl", "names an address"),
        ("./evil.whl", "is a file or address"),
        ("/tmp/evil.whl", "is a file or address"),
        ("git+https://example.org/evil", "is a file or address"),
        ("pandas===/../../../tmp/evil", "takes the path of a file"),
        ("pandas[all] (===/../tmp/evil.whl)", "takes the path of a file"),
        ("pandas==", "is not a package"),
        ("pan das", "is not a package"),
        ("pandas\n--pre", "is not a package"),
        ("pandas\x1b[31m", "is not a package"),
        ("p" * 301, "is not a package"),
    ],
)
def test_anything_else_is_refused_with_the_reason(given: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        definition(given)
    assert "\x1b" not in str(caught.value)


def test_a_package_is_listed_once() -> None:
    with pytest.raises(DefinitionError, match="'Pandas' and 'pandas==1' are the same package"):
        definition("Pandas", "pandas==1")
    both = ('tomli; python_version < "3.12"', 'tomli>2; python_version >= "3.12"')
    assert len(definition(*both).requirements) == 2
    with pytest.raises(DefinitionError, match="201 packages, the limit is 200"):
        definition(*(f"p{n}" for n in range(201)))


def test_a_jar_has_no_python_packages() -> None:
    with pytest.raises(DefinitionError, match=r"a jar takes 'spark\.packages'"):
        build_definition({"name": "a", "jar": "a.jar", "class": "A", "requirements": ["pandas"]}, "job.yaml")


def test_a_policy_lists_the_packages_of_a_pool() -> None:
    policy = Policy({"*": PoolPolicy(requirements=("pandas", "acme-*"))})
    policy.check("default", definition("pandas==2.3.3", "Acme_Words"))
    with pytest.raises(PolicyRefused, match=r"'evil==1' is refused in pool default .*allowed: pandas, acme-"):
        policy.check("default", definition("evil==1"))


# ---------------------------------------------------------------------- drivers
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def installed(folder: str = "/cache/packages/k-1") -> Environment:

    return Environment(Path(folder), HERE, "linux-x86_64", compiled=False, installed=(), size=0, contents="")


def test_tasks_on_other_hosts_get_an_archive() -> None:
    own = {"spark.executorEnv.PYTHONPATH": "mine", "spark.archives": "data.zip"}
    assert with_packages(own, installed(), SparkTarget("local[2]")) == own | {
        "spark.executorEnv.PYTHONPATH": "/cache/packages/k-1:mine"
    }
    assert with_packages(own, installed(), SparkTarget("yarn", "cluster")) == {
        "spark.executorEnv.PYTHONPATH": f"{UNPACKED}:mine",
        "spark.archives": f"data.zip,/cache/packages/k-1.zip#{UNPACKED}",
    }
    assert folder_of(installed(), SparkTarget("yarn", "client")) == "/cache/packages/k-1"
    assert folder_of(installed(), SparkTarget("yarn", "cluster")) == UNPACKED


@pytest.mark.parametrize(
    ("python", "platform"), [("3.1", sysconfig.get_platform()), (HERE, "macosx-14.0-arm64")]
)
def test_machine_code_for_another_python_is_one_sentence_before_the_program_runs(
    python: str, platform: str
) -> None:
    with pytest.raises(
        PackagesUnusable, match=f"for Python {python} on {platform}.*runs Python {HERE} on"
    ) as caught:
        use_packages(PlannedPackages("/x", python, platform, compiled=True))
    ended = of_error(caught.value)
    assert ended["error"]["class"] == "definition"
    assert "traceback" not in ended["error"]


def test_a_driver_without_the_folder_is_submitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_runner.driver.job_packages.SparkFiles.get", lambda name: f"/no/{name}")
    with pytest.raises(RefusedAtStart, match="there is no folder /no/such") as caught:
        use_packages(PlannedPackages("/no/such", HERE, sysconfig.get_platform(), compiled=False))
    assert of_error(caught.value)["error"]["class"] == "submission"


def test_a_plan_keeps_its_packages() -> None:
    plan = run_plan(packages=PlannedPackages("/x", "3.11", "linux-x86_64", compiled=True))
    assert type(plan).of(plan.to_json()) == plan


# ---------------------------------------------------------------------- words of pip
PYTHON = TargetPython(sys.executable, "3.11", "linux-x86_64")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "no space",
        ),
        ("ERROR: HTTP error 503 while getting x\nERROR: 503 Server Error: busy", "is unreachable"),
        ("something odd", "pip could not install a: something odd"),
        ("", "it printed nothing"),
    ],
)
def test_passing_errors_of_pip(text: str, words: str) -> None:
    found = failure(text, ["a"], PYTHON)
    assert words in str(found)
    assert type(found).__name__ == "SubmissionError"
