"""The failure that the last output of spark-submit reports."""

from spark_runner.runners.submission_state import missing_packages, trouble

ENDS = """
\t\t:: org.example#nothing;1.0: not found
:: USE VERBOSE OR DEBUG MESSAGE LEVEL FOR MORE DETAILS
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.example#nothing;1.0: none]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:539)
"""
SILENT = (
    "\tServer access error at url http://127.0.0.1:1/x.pom (java.net.ConnectException: Connection refused)\n"
)


def test_packages_that_no_repository_has_are_a_mistake_of_the_definition() -> None:
    failure = missing_packages(ENDS)
    assert failure is not None
    assert (failure.error_class, failure.is_passing) == ("definition", False)
    assert "packages org.example:nothing:1.0 are in no repository" in failure.message


def test_packages_whose_repository_does_not_answer_may_come_later() -> None:
    failure = missing_packages(SILENT + ENDS)
    assert failure is not None
    assert (failure.error_class, failure.is_passing) == ("submission", True)
    assert "http://127.0.0.1:1/x.pom: java.net.ConnectException" in failure.message


def test_a_repository_whose_host_cannot_be_resolved_may_come_later() -> None:
    failure = missing_packages("\tHost no.such.host not found. url=https://no.such.host/x.pom\n" + ENDS)
    assert failure is not None
    assert failure.is_passing


def test_output_of_a_program_about_packages_is_no_missing_package() -> None:
    assert missing_packages("unresolved dependency: a#b;1: not found") is None


def test_the_reason_for_the_end_of_a_jvm_is_its_own_error_line() -> None:
    words = (
        "Unrecognized VM option 'Fast'\nError: Could not create the Java Virtual Machine.\n"
        'Exception in thread "main" org.apache.spark.SparkUserAppException: User application exited with 3\n'
    )
    assert trouble(words) == "Error: Could not create the Java Virtual Machine."
    assert trouble("all is well\n") == ""
