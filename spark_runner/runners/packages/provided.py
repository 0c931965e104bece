"""What the platform offers to packages: PySpark, which pip must neither download nor replace.

PyPI has PySpark as a source distribution alone, and many packages need it. A wheel without any module stands
for it while pip resolves their dependencies.
"""

import zipfile
from pathlib import Path

_EXTRAS = ("connect", "ml", "mllib", "pandas-on-spark", "pipelines", "sql")


def write_provided(folder: Path, spark_version: str) -> Path:
    """Write the wheel into a folder, with constraints for pip beside it; returns the constraints."""
    constraints = folder / "constraints.txt"
    if not spark_version:
        constraints.write_text("", "ascii")
        return constraints
    base = f"pyspark-{spark_version}"
    info = f"{base}.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: pyspark\nVersion: {spark_version}\n"
        + "".join(f"Provides-Extra: {extra}\n" for extra in _EXTRAS),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{base}-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    constraints.write_text(f"pyspark=={spark_version}\n", "ascii")
    return constraints
