"""The child of `spark_runner.runners.local_analysis`: it starts a local Spark and answers one request."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.logs.files import write_json
from spark_runner.driver.quick_imports import prepare_imports
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.process import end_with_parent
from spark_runner.protocol.redacted import has_secrets, redacted

_REQUEST, _ANSWER = "request.json", "answer.json"


def main(folder: Path, parent: int) -> None:
    """Answer the request in the folder; the process that started this one ends the JVM."""
    end_with_parent()
    if os.getppid() != parent:  # it ended before the line above
        return
    prepare_imports()
    request = json.loads((folder / _REQUEST).read_text("utf-8"))
    write_json(folder / _ANSWER, answer_of(request))


def answer_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """The result, or the errors of the script, or the failure of anything else; it shows no secret.

    Without references the rows are shown as they are, also those that look like a secret.
    """
    found = _answer(request)
    return dict(redacted(found)) if has_secrets() else found


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    # PySpark is imported after `prepare_imports`.
    from spark_runner.sql.text.errors import SqlError  # noqa: PLC0415

    try:
        return _ANSWERS[request["kind"]](request)
    except SqlError as error:
        return {"refused": [each.to_json() for each in (error, *error.others)]}
    except SparkRunnerError as error:
        return {"failure": str(error)}


def _preview(request: Mapping[str, Any]) -> dict[str, Any]:
    from spark_runner.sql.execution.preview import preview  # noqa: PLC0415 - as above

    session, resolver = _session(request), _resolver(request)
    return preview(
        session, request["plan"], request["table"], request["rows"], request["width"], resolver=resolver
    )


def _explain(request: Mapping[str, Any]) -> dict[str, Any]:
    from spark_runner.sql.execution.analysis import analyse_script  # noqa: PLC0415 - as above

    return analyse_script(
        _session(request),
        request["plan"],
        connect=request["connect"],
        with_plan=request["with_plan"],
        resolver=_resolver(request),
    )


def _checkpoints(request: Mapping[str, Any]) -> dict[str, Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    from spark_runner.connectors.errors import ConnectorError  # noqa: PLC0415 - as above
    from spark_runner.sql.checkpoints.listing import checkpoints_in  # noqa: PLC0415 - as above
    from spark_runner.sql.checkpoints.removal import remove  # noqa: PLC0415 - as above
    from spark_runner.sql.execution.hadoop_folders import folders_of  # noqa: PLC0415 - as above

    spark = SparkSession.builder.getOrCreate()
    if request["action"] == "list":
        folders = folders_of(spark, request["place"])
        found = checkpoints_in(folders, request["place"], request["name"])
        return {"found": [each.to_json() for each in found]}
    try:
        remove(folders_of(spark, request["url"]), request["url"])
    except ConnectorError as error:
        return {"error": str(error)}
    return {"error": ""}


def _resolver(request: Mapping[str, Any]) -> Any:
    from spark_runner.references.masks import Masks  # noqa: PLC0415 - as above
    from spark_runner.references.resolver import Resolver  # noqa: PLC0415 - as above
    from spark_runner.references.sources import Sources  # noqa: PLC0415 - as above

    return Resolver(Sources.of(request["references"]), Masks(own_jvm=True))


def _session(request: Mapping[str, Any]) -> Any:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    from spark_runner.sql.execution.folder import set_working_directory  # noqa: PLC0415 - as above

    spark = SparkSession.builder.getOrCreate()
    set_working_directory(spark, request["plan"]["directory"])
    return spark


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "checkpoints": _checkpoints,
    "explain": _explain,
    "preview": _preview,
}

if __name__ == "__main__":
    # The runner has started it with -P: its siblings cannot hide other modules.
    main(Path(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the JVM need not stop in order
