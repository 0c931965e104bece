"""Makes the tables in docs/connectors.md from the options of the connectors."""

from inspect import cleandoc

from docs.generated import Part
from spark_runner.connectors.options import ConnectorOptions, options_of
from spark_runner.connectors.push_options import PushOptions
from spark_runner.connectors.registry import BUILT_IN


def section(name: str) -> str:
    """The heading, the abilities and the options of one connector."""
    connector, model = BUILT_IN[name], options_of(name)
    verbs = [verb for verb, part in (("reads", connector.source), ("writes", connector.sink)) if part]
    facts = [f"It {' and '.join(verbs)}."]
    if connector.sink:
        promise = model.model_construct().guarantee(has_primary_key=False)
        facts.append(f"Once a job has finished, each row is in the target {promise}.")
    # Those of the push last: the reader looks for `url`.
    options = sorted(model.model_fields, key=lambda name: name in PushOptions.model_fields)
    rows = "".join(row(model, option) for option in options)
    about = cleandoc(model.__doc__ or "")
    table = f"| option | default | meaning |\n|---|---|---|\n{rows}"
    return f"### `{name}`\n\n{about} {' '.join(facts)}\n\n{table}"


def row(model: type[ConnectorOptions], name: str) -> str:
    """One option."""
    field = model.model_fields[name]
    default = field.get_default(call_default_factory=True)
    if field.is_required():
        shown = "required"
    elif default in ("", (), {}, None):
        shown = ""
    else:
        shown = f"`{str(default).lower() if isinstance(default, bool) else default}`"
    return f"| `{name}` | {shown} | {field.description} |\n"


def made() -> str:
    """One section per connector."""
    return "\n".join(map(section, BUILT_IN))


PART = Part(__file__, "connectors.md", "the options of the connectors", made)

if __name__ == "__main__":
    PART.write()
