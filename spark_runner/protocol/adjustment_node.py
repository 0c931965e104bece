"""The node of a job with the limits of its pushes that an operator has changed."""

ADJUSTMENT = "adjustment"
"""Its name, below the record of the job."""


def adjustment_path(attempt_path: str) -> str:
    """The node of the job of an attempt."""
    return f"{attempt_path.rpartition('/')[0]}/{ADJUSTMENT}"
