"""Makes the table in docs/sql-settings.md from the settings that the compiler of scripts knows."""

from pathlib import Path

from spark_runner.sql.compiler.streaming_settings import STREAMING_SETTINGS, StreamingSetting

TARGET = Path(__file__).with_name("sql-settings.md")
BEGIN = "<!-- made by docs/make_sql_settings.py from spark_runner/sql/compiler/streaming_settings.py -->"
END = "<!-- end -->"


def row(setting: StreamingSetting) -> str:
    """The key of a setting, what becomes of it, and what to do for all other values."""
    accepted = ", ".join(f"`{value}`" for value in setting.accepted)
    if setting.becomes:
        effect = f"is `{setting.becomes}`"
    else:
        accepted = accepted or ("each whole number from 1" if setting.takes_values else "")
        effect = f"accepted: {accepted}" if accepted else "refused"
    return f"| `{setting.key}` | {effect} | {setting.instead} |\n"


def render(page: str) -> str:
    """The page, with the table between the two marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = "| key | here | other values |\n|---|---|---|\n" + "".join(map(row, STREAMING_SETTINGS))
    return f"{before}{BEGIN}\n{made}{END}{after}"


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
