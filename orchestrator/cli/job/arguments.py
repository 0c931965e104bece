"""What several of these commands take."""

from typing import Annotated

import typer

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
