"""Draws the layers and the table of folders in CONTRIBUTING.md from the contracts in pyproject.toml."""

import ast
import re
import tomllib
from pathlib import Path

from docs.generated import Part

PROJECT = Path(__file__).parent.parent
PACKAGES = ("orchestrator", "spark_runner", "queues")


def layers(package: str) -> list[list[str]]:
    """The layers of a package from the top, each with the folders and modules in it."""
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(
        contract["layers"]
        for contract in contracts
        if contract["type"] == "layers" and contract["containers"] == [package]
    )
    return [re.split(r"\s*[|:]\s*", row) for row in rows]


def sentence(package: str, name: str) -> str:
    """The first line of the docstring of a folder or module."""
    path = PROJECT / package / name
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")
    docstring = ast.get_docstring(ast.parse(source))
    assert docstring is not None  # noqa: S101 - ruff asks for one in each file
    return docstring.splitlines()[0]


def picture(package: str) -> str:
    """One box per layer, the top layer first."""
    rows = ["   ".join(names) for names in layers(package)]
    width = max(len(row) for row in rows)
    boxes = f"\n├{'─' * (width + 2)}┤\n".join(f"│ {row:<{width}} │" for row in rows)
    return f"{package}\n┌{'─' * (width + 2)}┐\n{boxes}\n└{'─' * (width + 2)}┘\n"


def table(package: str) -> str:
    """Each folder and module with its duty, in the order of the layers."""
    names = [name for row in layers(package) for name in row if name != "__main__"]
    ends = ["/" if (PROJECT / package / name).is_dir() else ".py" for name in names]
    return "".join(
        f"| `{package}/{name}{end}` | {sentence(package, name)} |\n"
        for name, end in zip(names, ends, strict=True)
    )


def made() -> str:
    """The pictures of all packages, and one table of their folders."""
    pictures = "".join(f"```text\n{picture(package)}```\n\n" for package in PACKAGES)
    return pictures + "| place | duty |\n|---|---|\n" + "".join(table(package) for package in PACKAGES)


PART = Part(__file__, "../CONTRIBUTING.md", "pyproject.toml", made)

if __name__ == "__main__":
    PART.write()
