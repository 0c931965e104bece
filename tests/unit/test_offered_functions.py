"""Functions of the platform: what a worker gives a driver, what travels, and what a policy refuses."""

import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.settings import load_settings
from orchestrator.config.tables import PoolPolicy
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import DefinitionError, SettingsError
from orchestrator.model.plan import compile_program
from orchestrator.policy.policy import Policy
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import zip_bytes
from tests.unit.test_submit_request import request_with_jars

SCRIPT = "SELECT Make_Slug('a'), upper('b'), gross(1), unknown(2);"
POINTS = (
    "[spark_job_orchestrator.functions]\nmake_slug = acme_functions.text:slug\nOther = acme_functions:other\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with functions, which is installed for this process alone."""
    folder = tmp_path / "site"
    package = folder / "acme_functions"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('no worker imports this')", "utf-8")
    (package / "text.py").write_text("def slug(text: str) -> str: ...", "utf-8")
    info = folder / "acme_functions-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-functions\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(POINTS, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    zip_bytes.cache_clear()
    return folder


def submitted(folder: Path, script: str = SCRIPT, **parts: Any) -> SubmitRequest:
    return request_with_jars({}, folder, parts.pop("spark", {}), script=script, **parts)


@pytest.mark.usefixtures("site")
def test_a_worker_gives_a_driver_the_functions_that_its_script_calls(tmp_path: Path) -> None:
    made = submitted(tmp_path)
    assert made.plan["sql"]["functions"] == {"make_slug": "acme_functions.text:slug"}
    assert made.python_packages == ("acme_functions",)
    assert not made.is_warm, "no other job may use its processes"
    assert "acme_functions" not in sys.modules
    plain = submitted(tmp_path, "SELECT 1;")
    assert (plain.plan["sql"]["functions"], plain.python_packages, plain.is_warm) == ({}, (), True)


@pytest.mark.usefixtures("site")
def test_functions_of_the_setting_win_and_those_of_the_script_are_its_own(tmp_path: Path) -> None:
    setting = {"GROSS": "acme_prices:gross", "make_slug": "other_functions:slug", "never": "a:b"}
    made = submitted(tmp_path, functions=setting)
    assert made.plan["sql"]["functions"] == {
        "gross": "acme_prices:gross",
        "make_slug": "other_functions:slug",
    }
    assert made.python_packages == ("acme_prices", "other_functions")
    own = submitted(tmp_path, f"CREATE TEMPORARY FUNCTION make_slug AS 'a.b'; {SCRIPT}")
    assert own.plan["sql"]["functions"] == {}


@pytest.mark.usefixtures("site")
def test_the_worker_decides_what_a_function_is_and_not_the_plan(tmp_path: Path) -> None:
    definition = build_definition({"name": "j", "script": SCRIPT, "directory": str(tmp_path)}, "test")
    plan: Any = compile_program(definition)
    evil = {**plan, "functions": {"upper": "os:system"}, "python_files": ["os.py"]}
    sent = submitted(tmp_path, plan=evil).plan["sql"]
    assert (sent["functions"], sent["python_files"]) == ({"make_slug": "acme_functions.text:slug"}, [])
    for calls in ("make_slug", [1], {"a": 1}):
        with pytest.raises(DefinitionError, match="the `calls` of its plan cannot be read"):
            submitted(tmp_path, plan={**plan, "calls": calls})


@pytest.mark.usefixtures("site")
def test_a_policy_lists_the_functions_of_a_pool(tmp_path: Path) -> None:
    policy = Policy({"team": PoolPolicy(functions=("other", "text_*"))})
    with pytest.raises(
        DefinitionError, match=r"the function 'make_slug' is refused in pool team .*functions"
    ):
        submitted(tmp_path, policy=policy)
    submitted(tmp_path, "SELECT other(1);", policy=policy)
    submitted(tmp_path, "CREATE TEMPORARY FUNCTION make_slug AS 'a.b'; SELECT make_slug(1);", policy=policy)


def test_a_driver_gets_the_names_of_the_python_files_of_its_job(tmp_path: Path) -> None:
    (tmp_path / "shop.py").touch()
    spark = {
        "py_files": ["shop.py", "s3a://code/lib/tools.zip"],
        "conf": {"spark.submit.pyFiles": "/x/a.egg"},
    }
    assert submitted(tmp_path, spark=spark).plan["sql"]["python_files"] == ["a.egg", "shop.py", "tools.zip"]


def test_the_setting_names_functions_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(file))
    file.write_text('[functions]\nslug = "acme.text:slug"\n', "utf-8")
    assert load_settings().functions == {"slug": "acme.text:slug"}
    for wrong in ('slug = "acme.text"', '"my f" = "a:b"', 'slug = "a:b()"'):
        file.write_text(f"[functions]\n{wrong}\n", "utf-8")
        with pytest.raises(SettingsError):
            load_settings()
