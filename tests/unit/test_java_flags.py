import pytest

from spark_runner.runners.spark_settings import SHORT_JOB_FLAGS, chosen_options, quick_flags


def test_all_that_reaches_the_jvm_is_found() -> None:
    environment = {"SPARK_SUBMIT_OPTS": "-Da=1 '-Db=x y'", "JAVA_TOOL_OPTIONS": "-Xss2m", "OTHER": "-Dno"}
    conf = {"spark.driver.extraJavaOptions": '-Dc="1 2"', "spark.driver.defaultJavaOptions": "-Dd"}
    assert chosen_options(environment, conf) == ["-Da=1", "-Db=x y", "-Xss2m", "-Dd", "-Dc=1 2"]
    assert chosen_options({"SPARK_SUBMIT_OPTS": "-Da='"}, {}) is None


def test_a_short_job_gets_one_compiler_and_one_thread_for_garbage() -> None:
    assert quick_flags(SHORT_JOB_FLAGS, ["-Dmine", "-Xss2m"]) == list(SHORT_JOB_FLAGS)


def test_of_the_flags_of_a_short_job_one_that_the_user_gave_is_left_out() -> None:
    assert "-XX:MetaspaceSize=256m" in SHORT_JOB_FLAGS
    given = quick_flags(SHORT_JOB_FLAGS, ["-XX:MetaspaceSize=64m"])
    assert given == [flag for flag in SHORT_JOB_FLAGS if "Metaspace" not in flag]


@pytest.mark.parametrize(
    "chosen", [["-XX:+UseG1GC"], ["-XX:-UseSerialGC"], ["-XX:TieredStopAtLevel=4"], ["-Xint"], None]
)
def test_settings_of_the_user_stay(chosen: list[str] | None) -> None:
    assert quick_flags(SHORT_JOB_FLAGS, chosen) == []
