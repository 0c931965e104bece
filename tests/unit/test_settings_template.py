"""The file that `orchestrator init` writes: it changes nothing, and each of its lines can be used."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.origins import local_settings
from orchestrator.config.settings import Settings, load_settings
from orchestrator.config.template import render

LINES = [line[1:] for line in render().splitlines() if re.match(r'#[a-z_]+[.\w"*-]* = ', line)]
FOLDER = "/etc/spark-job-orchestrator"
# What a line needs beside it.
NEEDS = {
    "zookeeper_tls.": ['zookeeper_hosts = "zk:2181"'],
    "zookeeper_tls.key_file": ['zookeeper_tls.certificate_file = "FOLDER/certificate"'],
    "zookeeper_login.": ['zookeeper_hosts = "127.0.0.1:2181"'],
    "zookeeper_group.": ['zookeeper_hosts = "127.0.0.1:2181"', 'zookeeper_login.user = "me"'],
    "metrics.key_file": ['metrics.certificate_file = "FOLDER/certificate"'],
    "archive.key_file": ['archive.url = "https://search:9200"'],
    "archive.ca_file": ['archive.url = "https://search:9200"'],
    "references.secrets.NAME.options": ['references.secrets.NAME.provider = "vault"'],
}
LOGINS = ("zookeeper_login.", "zookeeper_group.", "zookeeper_drivers.login.")


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith(("ORCHESTRATOR_", "ZOOKEEPER_HOSTS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(tmp_path / "config.toml"))
    for name in ("ca", "certificate", "key", "password", "token"):
        (tmp_path / name).write_text("x", "utf-8")


def written(folder: Path, text: str) -> Settings:
    (folder / "config.toml").write_text(text.replace(FOLDER, str(folder)), "utf-8")
    return load_settings()


def test_the_file_as_it_is_changes_nothing(tmp_path: Path) -> None:
    assert tomllib.loads(render()) == {}
    assert written(tmp_path, render()) == Settings.model_validate({})


def needed(line: str, folder: Path) -> list[str]:
    """The lines that this one needs, without those that set the same."""
    found = [each for name, lines in NEEDS.items() if line.startswith(name) for each in lines]
    for table in LOGINS:
        if line.startswith(table) or any(each.startswith(table) for each in found):
            found += [f'{table}user = "orchestrator"', f'{table}password_file = "{folder}/password"']
    if line.startswith("zookeeper_group."):
        found.append('zookeeper_login.scheme = "sasl"')
    if line.startswith(("zookeeper_drivers.login",)):
        found.append('zookeeper_hosts = "127.0.0.1:2181"')
    by_name = {each.partition(" = ")[0]: each for each in found}
    return [each for name, each in by_name.items() if name != line.partition(" = ")[0]]


@pytest.mark.parametrize("line", LINES)
def test_each_line_can_be_used(line: str, tmp_path: Path) -> None:
    line = line.replace(FOLDER, str(tmp_path))
    others = [each.replace("FOLDER", str(tmp_path)) for each in needed(line, tmp_path)]
    settings = written(tmp_path, "\n".join([*others, line]))
    path = tomllib.loads(line)
    assert origin(settings, path) == "file"


def origin(settings: Settings, document: dict[str, Any]) -> str:
    """The origin of the one value in a document."""
    names = list[str]()
    found: Any = document
    while isinstance(found, dict) and found:
        (name,) = found
        names.append(name)
        found = found[name]
    # A text as `checkpoints` is that of all pools.
    by_name = {setting.name: setting.origin.value for setting in local_settings(settings)}
    return by_name.get(".".join(names)) or by_name[f"{'.'.join(names)}.*"]


def test_each_setting_is_in_the_file_and_has_a_description() -> None:
    assert {re.split(r"[. ]", line, maxsplit=1)[0] for line in LINES} == set(Settings.model_fields)
    text = render()
    assert "None" not in re.sub(r"with run_as, None", "", text)
    for before, line in zip(text.splitlines(), text.splitlines()[1:], strict=False):
        if line.startswith("#") and line[1:] in LINES:
            assert before.startswith("# ") or before[1:] in LINES, line


def test_the_defaults_in_the_file_are_those_in_force(tmp_path: Path) -> None:
    default = {setting.name: setting.value for setting in local_settings(written(tmp_path, ""))}
    for line in LINES:
        name, _, value = line.partition(" = ")
        if name in default and default[name] not in (None, {}, []):
            settings = written(tmp_path, line)
            assert {s.name: s.value for s in local_settings(settings)}[name] == default[name], value
