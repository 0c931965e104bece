"""Makes the picture in docs/life-of-a-job.md from the transition table: it cannot say anything else."""

import ast
import inspect
import sys
from pathlib import Path

from orchestrator.model import states
from orchestrator.model.states import FINAL, TRANSITIONS, Status

TARGET = Path(__file__).with_name("life-of-a-job.md")
BEGIN = "<!-- made by docs/make_life.py from orchestrator/model/states.py -->"
END = "<!-- end -->"


def reasons() -> dict[tuple[Status, Status], str]:
    """The comment of each edge, as it stands behind it in the source; an edge without one says nothing."""
    source = inspect.getsource(states)
    lines = source.splitlines()
    table = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "TRANSITIONS"
    )
    found = {}
    assert isinstance(table.value, ast.Dict)  # noqa: S101 - the source is ours
    for key, value in zip(table.value.keys, table.value.values, strict=True):
        assert isinstance(key, ast.Attribute)  # noqa: S101 - likewise
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "Status":
                comment = lines[node.lineno - 1].partition("# ")[2].strip()
                found[Status[key.attr], Status[node.attr]] = comment
    return found


def render(page: str) -> str:
    """The page, with the picture and the table between the two marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_made()}{END}{after}"


def _made() -> str:
    why = reasons()
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> ACCEPT"]
    lines += [
        f"    {before} --> {after}" for before, afters in TRANSITIONS.items() for after in sorted(afters)
    ]
    lines += [f"    {status} --> [*]" for status in sorted(FINAL)]
    lines += ["```", "", "| from | to | when |", "|---|---|---|"]
    lines += [
        f"| {before} | {after} | {why[before, after]} |"
        for before, afters in TRANSITIONS.items()
        for after in sorted(afters)
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
