"""Makes docs/states.md from the transition table: the picture cannot say anything else than the code."""

import ast
import inspect
import sys
from pathlib import Path

from orchestrator import states
from orchestrator.states import FINAL, TRANSITIONS, Status

TARGET = Path(__file__).with_name("states.md")


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


def render() -> str:
    """The page."""
    why = reasons()
    lines = [
        "# States of a job",
        "",
        "Made from `orchestrator/states.py` by `python docs/make_states.py`; a test holds them together.",
        "",
        "A job starts as ACCEPT. Each status belongs to the queue of its kind until the job is in `finish`,",
        f"which keeps {', '.join(sorted(FINAL))} for the time of retention and then removes the job.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> ACCEPT",
    ]
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
    TARGET.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
