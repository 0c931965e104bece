"""References in a statement: the pieces of an option's value, and the refusal of references elsewhere."""

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from spark_runner.references.reference import Pieces, Reference
from spark_runner.sql.grammar.statements import CreateTable, Statement
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.literals import string_value
from spark_runner.sql.text.passage import Passage, PlacedReference
from spark_runner.sql.text.tokens import SqlToken, TokenKind
from spark_runner.sql.text.variables import ONLY_IN_OPTIONS

_start = attrgetter("start")


def referring_pieces(cursor: Cursor, token: SqlToken) -> tuple[Sequence[PlacedReference], Pieces]:
    """The references in a token and the pieces of its value; both empty without references."""
    known = cursor.passage.references
    places = known[bisect_left(known, token.start, key=_start) : bisect_left(known, token.end, key=_start)]
    if not places or token.kind is not TokenKind.STRING:
        return (), ()
    opening = token.text[:2] if token.text[0] in "rR" else token.text[0]
    first, last = token.start + len(opening), token.end - 1
    texts = list[str | Reference]()
    try:
        for place in places:
            # No escape and no doubled quote crosses the `$` of a reference.
            texts += [_text(cursor, opening, first, place.start), place.reference]
            first = place.end
        texts.append(_text(cursor, opening, first, last))
    except ValueError as error:
        raise cursor.error(str(error), token.start) from error
    return places, [text for text in texts if text != ""]


def _text(cursor: Cursor, opening: str, start: int, end: int) -> str:
    return string_value(f"{opening}{cursor.passage.text[start:end]}{opening[-1]}")


def refuse_elsewhere(statement: Statement, passage: Passage) -> None:
    """Raise SqlError for a reference in `passage` outside of the value of an option of a table."""
    known = passage.references
    if not known:
        return
    options = statement.options if isinstance(statement, CreateTable) else ()
    in_options = {place.start for option in options for place in option.references}
    for place in known:
        if place.start not in in_options:
            message = f"the reference {place.reference} has no meaning here: {ONLY_IN_OPTIONS}"
            raise passage.error(message, place.start)
