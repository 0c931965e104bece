import os
import shutil
from pathlib import Path

import pytest

from spark_runner.runners.class_archive.store import Fit, fit_of

SERIAL = "-XX:+UseSerialGC"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("java/bin/java", "java/lib/modules", "java/lib/server/libjvm.so", "spark/jars/core.jar"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", "ascii")
    (tmp_path / "java/bin/java").chmod(0o755)
    return {"JAVA_HOME": str(tmp_path / "java"), "SPARK_HOME": str(tmp_path / "spark"), "PATH": ""}


def fit(environment: dict[str, str], *options: str, conf_dir: str = "/conf", **conf: str) -> Fit | None:
    named = {f"spark.driver.{name}": value for name, value in conf.items()}
    return fit_of(environment, named, options, Path(conf_dir))


def key(environment: dict[str, str], *options: str, conf_dir: str = "/conf") -> str:
    found = fit(environment, *options, conf_dir=conf_dir)
    assert found is not None
    return found.key


def test_drivers_that_differ_in_what_no_archive_holds_share_one(environment: dict[str, str]) -> None:
    alike = key(environment)
    assert key(environment, "-Dmine=1", "-Xss4m", "-XX:TieredStopAtLevel=1", "-Xmx2g") == alike
    assert key({**environment, "HADOOP_CONF_DIR": "/etc/hadoop", "LANG": "C"}) == alike


@pytest.mark.parametrize("file", ["java/lib/modules", "java/lib/server/libjvm.so", "spark/jars/core.jar"])
def test_another_java_or_spark_at_the_same_path_is_another_key(
    environment: dict[str, str], tmp_path: Path, file: str
) -> None:
    before = key(environment)
    os.utime(tmp_path / file, ns=(1, 1))
    changed = key(environment)
    (tmp_path / file).write_text("xx", "ascii")
    assert len({before, changed, key(environment)}) == 3


def test_equal_sparks_in_two_folders_have_their_own_and_their_drivers_pythons_do_not_count(
    environment: dict[str, str], tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "spark", tmp_path / "other")  # also the times of its jars
    other = {**environment, "SPARK_HOME": str(tmp_path / "other")}
    assert key(other) != key(environment)
    found = fit({**environment, "PYSPARK_DRIVER_PYTHON": "/opt/python"})
    assert found is not None
    assert (found.key, found.python) == (key(environment), "/opt/python")


def test_a_jar_more_another_collector_and_another_conf_dir_are_other_keys(
    environment: dict[str, str], tmp_path: Path
) -> None:
    keys = {key(environment), key(environment, SERIAL), key(environment, conf_dir="/other")}
    keys.add(key(environment, "-XX:-UseCompressedOops"))
    (tmp_path / "spark/jars/more.jar").write_text("x", "ascii")
    keys.add(key(environment))
    assert len(keys) == 5


def test_the_flags_that_matter_are_given_when_it_is_made(environment: dict[str, str]) -> None:
    found = fit(environment, "-Da=b", SERIAL, "-XX:-UseCompressedOops", "-XX:TieredStopAtLevel=1")
    assert found is not None
    assert found.flags == (SERIAL, "-XX:-UseCompressedOops")


@pytest.mark.parametrize(
    "option",
    [
        "-XX:SharedArchiveFile=/mine.jsa",
        "-XX:ArchiveClassesAtExit=/mine.jsa",
        "-Xshare:off",
        "-Xshare:dump",
        "-XX:-UseSharedSpaces",
        "-XX:+AutoCreateSharedArchive",
        "-XX:AOTCache=x",
        "-Xbootclasspath/a:/x.jar",
        "-javaagent:/agent.jar",
        "-agentlib:jdwp=transport=dt_socket",
        "--patch-module=a=b",
        "-cp",
        "@options",
    ],
)
def test_a_driver_with_its_own_archive_options_gets_no_archive(
    environment: dict[str, str], option: str
) -> None:
    assert fit(environment, option) is None


def test_another_class_path_gets_no_archive(environment: dict[str, str]) -> None:
    assert fit(environment, extraClassPath="/mine.jar") is None
    assert fit({**environment, "SPARK_PREPEND_CLASSES": "1"}) is None


def test_without_java_spark_or_readable_options_there_is_none(environment: dict[str, str]) -> None:
    assert fit({**environment, "JAVA_HOME": "/nowhere"}) is None
    assert fit({**environment, "SPARK_HOME": ""}) is None
    assert fit({**environment, "SPARK_HOME": "/nowhere"}) is None
    assert fit_of(environment, {}, None, Path("/conf")) is None
