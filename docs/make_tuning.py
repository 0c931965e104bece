"""Makes the table of gains in docs/tuning-law.md from the settings."""

from docs.generated import Part, code, table
from orchestrator.config.tuning import Gains


def made() -> str:
    """One row per gain."""
    return table(
        ("gain", "default", "meaning"),
        (
            (code(name), str(field.default), field.description or "")
            for name, field in Gains.model_fields.items()
        ),
    )


PART = Part(__file__, "tuning-law.md", "orchestrator/config/tuning.py", made)

if __name__ == "__main__":
    PART.write()
