import sys
from pathlib import Path

import pytest

from queues.embedded.java import JarsMissing, Java, JavaMissing, find_jars, find_java
from queues.model.errors import QueueError

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
ORACLE_8 = 'java version "1.8.0_392"\nJava(TM) SE Runtime Environment (build 1.8.0_392-b08)'
EARLY_21 = 'openjdk version "21-ea" 2023-09-19'
FIRST_25 = 'openjdk version "25" 2025-09-16 LTS'


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


def fake_java(folder: Path, said: str, code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'END'\n{said}\nEND\nexit {code}\n", "utf-8")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("said", "major"),
    [
        (OPENJDK_17, 17),
        (EARLY_21, 21),
        (FIRST_25, 25),
        (f"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n{OPENJDK_17}", 17),
    ],
)
def test_java_on_path_is_found_with_its_version(tmp_path: Path, said: str, major: int) -> None:
    java = fake_java(tmp_path / "path", said)
    assert find_java() == Java(java, major)


@pytest.mark.parametrize(("said", "major"), [(ORACLE_8, 8), ('openjdk version "11.0.22" 2024-01-16', 11)])
def test_an_old_java_is_refused_with_its_version_and_path(tmp_path: Path, said: str, major: int) -> None:
    java = fake_java(tmp_path / "path", said)
    with pytest.raises(JavaMissing, match=f"version {major} was found at {java}; install a JDK"):
        find_java()


def test_the_error_without_java_names_what_to_install() -> None:
    with pytest.raises(
        JavaMissing, match=r"none was found; install a JDK .*openjdk-17-jre-headless.*JAVA_HOME"
    ):
        find_java()


def test_garbage_instead_of_a_version_is_shown(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", "hello")
    with pytest.raises(JavaMissing, match=r"printed no version \('hello'\)"):
        find_java()


def test_a_java_that_fails_is_reported_with_its_exit_code(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", f"{OPENJDK_17}", code=3)
    with pytest.raises(JavaMissing, match="exit code 3"):
        find_java()


def test_a_java_that_is_no_program_is_reported(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "path", "")
    java.write_bytes(b"\x00")
    with pytest.raises(JavaMissing, match="cannot be run"):
        find_java()


def test_java_home_wins_over_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path", OPENJDK_17)
    java = fake_java(tmp_path / "jdk" / "bin", FIRST_25)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == Java(java, 25)


def test_a_wrong_java_home_is_reported_and_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "path", OPENJDK_17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaMissing, match=r"gone/bin/java \(JAVA_HOME\)"):
        find_java()


def test_both_errors_belong_to_the_tree_of_the_package() -> None:
    assert issubclass(JavaMissing, QueueError)
    assert issubclass(JarsMissing, QueueError)


def test_jars_come_with_the_installed_pyspark_which_is_not_imported() -> None:
    before = "pyspark" in sys.modules
    jars = find_jars()
    assert jars.name == "jars"
    assert list(jars.glob("zookeeper-jute-*.jar"))
    assert ("pyspark" in sys.modules) == before


def test_spark_home_wins_over_the_installed_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "zookeeper-3.9.5.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert find_jars() == tmp_path / "jars"


def test_a_spark_without_zookeeper_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "zookeeper-jute-3.9.5.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(JarsMissing, match=rf"no zookeeper-\*\.jar in {tmp_path}/jars \(from SPARK_HOME\)"):
        find_jars()


def test_the_error_without_any_spark_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(JarsMissing, match="pip install pyspark"):
        find_jars()
