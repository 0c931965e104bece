"""Secrets that stand in a definition as they are: ZooKeeper keeps them, and its readers see them."""

from orchestrator.logs.record.redaction import REDACTOR, secrets_in
from orchestrator.logs.visible import visible
from orchestrator.models.definition import Definition
from orchestrator.plan import Plan

_MOST = 5


def literal_secrets(definition: Definition, plan: Plan | None) -> list[str]:
    """Where in a definition secrets stand, by the names of fields; `plan` is that of a script."""
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
    # A program that reads a secret looks like one that has it: texts of programs are left out.
    url = definition.callback.url
    found += ["callback.url"] if REDACTOR.mask(url) != url else []
    arguments = list(definition.arguments)
    found += ["arguments"] if REDACTOR.document(arguments) != arguments else []
    return found


def warning(names: list[str]) -> str:
    """The words for whoever submits it, and did not write it perhaps."""
    shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
    return (
        f"{visible(shown)} of the definition seems to hold a secret, which all readers of ZooKeeper can see; "
        "let the driver read it from its environment or from a file"
    )
