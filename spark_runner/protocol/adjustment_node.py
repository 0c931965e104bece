"""The node of a job with the limits of its pushes that an operator has changed."""

ADJUSTMENT = "adjustment"
"""Its name, below the record of the job."""
_DEPTH = 3  # below the folder of the job records: bucket, job, node


def adjustment_path(attempt_path: str) -> str:
    """The limits of a job's pushes that an operator has changed. JSON: limits by target."""
    return f"{attempt_path.rpartition('/')[0]}/{ADJUSTMENT}"


def is_adjustment(path: str, jobs: str) -> bool:
    """Whether a node is that of a job below `jobs`, the folder of the job records."""
    inside = path.removeprefix(f"{jobs}/").split("/")
    return path.startswith(f"{jobs}/") and len(inside) == _DEPTH and inside[-1] == ADJUSTMENT
