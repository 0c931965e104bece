"""The names of the folders of checkpoints."""

import hashlib
import re
import urllib.parse

SET_MARK = ",set"  # in the name of the folder of a statement set
_LONGEST_NAME = 160  # of the folder of a table; file systems allow 255 bytes
_CUT = "%.?$"  # what is left of a quoted byte behind a cut


def folder_name(table: str, which: str = "") -> str:
    """The name of the folder of a query: its table, and which of the queries of this table it is.

    No dot is at its begin: such folders are hidden. A name that is put away is longer, and has to fit, too.
    """
    name = urllib.parse.quote(table.lower(), safe="")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(table.lower().encode()).hexdigest()
        name = f"{re.sub(_CUT, '', name[:_LONGEST_NAME])}-{digest[:16]}"
    return f"{name},{which}" if which else name  # a quoted name has no comma
