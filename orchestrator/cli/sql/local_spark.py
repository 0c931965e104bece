"""Asks a Spark of this machine about a script or a file system; it runs as long as the question."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import typer

from orchestrator.cli.interrupt import Interrupt
from orchestrator.cli.output import stderr_console
from orchestrator.cli.sql.script import Script
from orchestrator.config.settings import Settings, load_settings
from orchestrator.handlers.functions import offered_functions
from orchestrator.handlers.lakes import lakes_of, with_lakes
from orchestrator.handlers.submit_request import connectors_of, python_code, spark_properties, spark_version
from orchestrator.logs.record.redaction import REDACTOR, secrets_in, secrets_of
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.local_analysis import analyse
from spark_runner.sql.text.built_ins import values_of


def ask_spark(script: Script, request: Mapping[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The answer of a local Spark about a script, which ends before this returns."""
    settings, definition = load_settings(), script.definition
    connectors = connectors_of(script.plan)
    jars, version = settings.connector_jars, spark_version()
    spark = with_lakes(definition.spark, lakes_of(script.plan), jars, version)
    conf = spark_properties(definition, spark, connectors, jars, version)
    REDACTOR.add_of_job([*secrets_in({**definition.variables, **conf}), *secrets_of(script.plan)])
    return ask(
        {
            **request,
            "plan": {
                **script.plan,
                "built_ins": _built_ins(),
                **python_code(conf, offered_functions(script.plan, settings.functions)),
            },
            "references": settings.references.sources().to_json(),
        },
        conf,
        settings,
        quiet=quiet,
    )


def ask(
    request: Mapping[str, Any],
    conf: Mapping[str, str],
    settings: Settings,
    *,
    quiet: bool,
    purpose: str = "",
) -> dict[str, Any]:
    """The answer of a local Spark with these properties to any request; `purpose` is named to the user."""
    if not quiet:
        to = f" to {purpose}" if purpose else ""
        stderr_console().print(f"starting Spark on this machine{to} ...", style="dim", markup=False)
    interrupt = Interrupt.install()
    try:
        with interrupt.breaking():
            return analyse(
                request,
                conf=conf,
                archives=_archives(settings),
                passed_on=settings.drivers.environment,
            )
    except KeyboardInterrupt:  # click would report SIGTERM as SIGINT
        raise typer.Exit(interrupt.exit_code) from None


def _built_ins() -> dict[str, str]:
    """The values of built-in variables for a run that would begin now."""
    return values_of("00000000-0000-0000-0000-000000000000", 1, datetime.now(UTC))


def _archives(settings: Settings) -> ClassArchives | None:
    return ClassArchives(settings.cache_dir, make=False) if settings.class_archives else None
