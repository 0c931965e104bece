"""Makes the tables of docs/reference.md from the model of a definition."""

from docs.fields import sections
from docs.generated import Part
from orchestrator.model.definition import Definition


def made() -> str:
    """The fields of a definition and of its parts."""
    return sections(Definition)


PART = Part(__file__, "reference.md", "orchestrator/model/definition.py", made)

if __name__ == "__main__":
    PART.write()
