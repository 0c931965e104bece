"""The node of an attempt with the positions up to which its pushes have delivered."""

MAX_BYTES = 64 * 1024
"""A push with more positions keeps none: a further attempt delivers its rows again."""


def positions_path(attempt_path: str) -> str:
    """How far the pushes of an attempt have delivered, for the next attempt; JSON of positions by target."""
    return f"{attempt_path}/positions"
