"""Makes the table in docs/sql-settings.md from the settings that the compiler of scripts knows."""

from docs.generated import Part
from spark_runner.sql.compiler.streaming_settings import STREAMING_SETTINGS, StreamingSetting


def row(setting: StreamingSetting) -> str:
    """The key of a setting, its effect, and what to do for all other values."""
    accepted = ", ".join(f"`{value}`" for value in setting.accepted)
    if setting.becomes:
        effect = f"sets `{setting.becomes}`"
    else:
        accepted = accepted or ("any whole number from 1" if setting.takes_values else "")
        effect = f"accepted: {accepted}" if accepted else "refused"
    return f"| `{setting.key}` | {effect} | {setting.instead} |\n"


def made() -> str:
    """One row per setting."""
    return "| key | effect | other values |\n|---|---|---|\n" + "".join(map(row, STREAMING_SETTINGS))


PART = Part(__file__, "sql-settings.md", "spark_runner/sql/compiler/streaming_settings.py", made)

if __name__ == "__main__":
    PART.write()
