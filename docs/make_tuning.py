"""Makes the table of gains in docs/tuning-law.md from the settings."""

from pathlib import Path

from orchestrator.config.tuning import Gains

TARGET = Path(__file__).with_name("tuning-law.md")
BEGIN = "<!-- made by docs/make_tuning.py from orchestrator/config/tuning.py -->"
END = "<!-- end -->"


def render(page: str) -> str:
    """The page, with the table between the two marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = "".join(
        f"| `{name}` | {field.default} | {field.description} |\n"
        for name, field in Gains.model_fields.items()
    )
    return f"{before}{BEGIN}\n| gain | default | meaning |\n|---|---|---|\n{rows}{END}{after}"


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
