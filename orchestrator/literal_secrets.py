"""Literal secrets in a definition: ZooKeeper stores them, and all its readers see them."""

from orchestrator.logs.record.redaction import REDACTOR, secrets_in
from orchestrator.logs.visible import visible
from orchestrator.models.definition import Definition
from orchestrator.plan import Plan

_MOST = 5


def literal_secrets(definition: Definition, plan: Plan | None) -> list[str]:
    """The fields of a definition that contain secrets; `plan` is that of a SQL script."""
    settings = {"variables": definition.variables, "spark.conf": definition.spark.conf}
    found = [
        f"{field}.{name}"
        for field, named in settings.items()
        for name, value in named.items()
        if secrets_in({name: value})
    ]
    for step in () if plan is None else plan["steps"]:
        options = {name: str(value) for name, value in (step.get("options") or {}).items()}
        found += [f"{step['name']}.{name}" for name in options if secrets_in({name: options[name]})]
    # Texts of programs are left out: code that reads a secret looks like code that contains it.
    url = definition.callback.url
    found += ["callback.url"] if REDACTOR.mask(url) != url else []
    arguments = list(definition.arguments)
    found += ["arguments"] if REDACTOR.document(arguments) != arguments else []
    return found


def warning(names: list[str]) -> str:
    """The warning for the submitting user, who may not be the author."""
    shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
    return (
        f"{visible(shown)} of the definition seems to hold a secret, which all readers of ZooKeeper can see; "
        "let the driver read it from its environment or from a file"
    )
