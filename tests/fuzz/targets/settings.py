"""Settings: a TOML file, and variables of the environment behind a line of `---`."""

import os
import tempfile
from pathlib import Path

from orchestrator.config.settings import load_settings
from orchestrator.model.errors import SettingsError
from tests.fuzz.promises import check_error

_FILE = Path(tempfile.mkdtemp(prefix="orchestrator-fuzz-")) / "config.toml"
_ENVIRONMENT = {**os.environ, "ORCHESTRATOR_CONFIG": str(_FILE)}


def try_input(data: bytes) -> None:
    """Valid settings are loaded; any others have an error for their author."""
    file, _, variables = data.partition(b"\n---\n")
    _FILE.write_bytes(file)
    os.environ.clear()
    os.environ.update(_ENVIRONMENT)
    for line in variables.replace(b"\0", b"").split(b"\n"):
        name, mark, value = line.partition(b"=")
        if mark and name.startswith(b"ORCHESTRATOR_") and name != b"ORCHESTRATOR_CONFIG":
            os.environb[name] = value
    try:
        load_settings()
    except SettingsError as error:
        check_error(error)
