"""Tiny wheels, made of text, for tests that install packages from a folder instead of an index."""

import zipfile
from collections.abc import Iterable
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    text: str = "",
    needs: Iterable[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """A wheel with one module of the name, whose `version` is that of the wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        f"{name}.py": f"version = {version!r}\n{text}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{each},,\n" for each in (*files, f"{info}/RECORD"))
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for each, contents in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(each, contents)
    return path
