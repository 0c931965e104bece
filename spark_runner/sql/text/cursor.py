"""Reads the tokens of one statement from left to right."""

from spark_runner.sql.text.built_ins import has_mark, readable
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import name_value, string_value
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

CLOSING = {"(": ")", "[": "]", "{": "}"}


class Cursor:
    """A position among the tokens of `passage`, without space and comments."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.tokens = passage.tokens
        self.index = 0

    @property
    def here(self) -> SqlToken | None:
        """The next token; None behind the last one."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def peek(self, ahead: int = 0) -> SqlToken | None:
        """The token `ahead` of the next one; None behind the last one."""
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """Offset of the next token, or of the end."""
        return self.here.start if self.here else len(self.passage.text)

    def error(self, message: str, offset: int | None = None) -> SqlError:
        """An error at `offset`, or at the next token."""
        return self.passage.error(message, self.offset if offset is None else offset)

    def expected(self, what: str) -> SqlError:
        """An error that names what is expected here, and what was found."""
        return self.error(f"expected {what}, found {self._found()}")

    def _found(self) -> str:
        """What comes next, as the user wrote it."""
        if self.here:
            return f"'{self.written(self.here)}'"
        # The text in parentheses is a passage of its own, which ends before the closing one.
        behind = self.passage.origin(len(self.passage.text))
        closing = self.passage.source.text[behind : behind + 1]
        return f"'{closing}'" if closing and closing in CLOSING.values() else "the end of the statement"

    def written(self, token: SqlToken) -> str:
        """The text of a token for a message: its variables keep their names, for values may be secrets."""
        return self.passage.written(token.start, token.end)

    def take_words(self, *words: str) -> bool:
        """Skip `words` if they come next; returns whether they did."""
        tokens, behind = self.tokens, self.index
        for word in words:  # a loop: most calls end at the first word
            if behind >= len(tokens) or not tokens[behind].is_word(word):
                return False
            behind += 1
        self.index = behind
        return True

    def take_symbol(self, symbol: str) -> bool:
        """Skip `symbol` if it comes next; returns whether it did."""
        if self.here and self.here.is_symbol(symbol):
            self.index += 1
            return True
        return False

    def need_symbol(self, symbol: str) -> None:
        """Skip `symbol`; raises SqlError if something else comes next."""
        if not self.take_symbol(symbol):
            raise self.expected(f"'{symbol}'")

    def take(self) -> SqlToken:
        """Skip and return the next token; raises SqlError at the end."""
        token = self.here
        if token is None:
            raise self.expected("more")
        self.index += 1
        return token

    def name(self, what: str) -> tuple[str, int]:
        """The next name, which must have one part, and its offset."""
        token = self.here
        if token is None or token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            raise self.expected(f"the name of a {what}")
        if has_mark(token.text):
            message = (
                f"{readable(token.text)} has no value yet when the script is checked; write a name without it"
            )
            raise self.error(message)
        self.index += 1
        if self.here and self.here.is_symbol("."):
            raise self.error(f"the name of a {what} of a script has one part, without dots")
        return name_value(token.text), token.start

    def text_of(self, token: SqlToken) -> str:
        """The value of a string token; the text of any other token."""
        if token.kind is not TokenKind.STRING:
            return token.text
        try:
            return string_value(token.text)
        except ValueError as error:
            raise self.error(str(error), token.start) from error

    def in_parentheses(self, what: str) -> Passage:
        """The text between the parenthesis that comes next and the one that closes it."""
        opening = self.offset
        self.need_symbol("(")
        expected = [")"]
        for index in range(self.index, len(self.tokens)):
            token = self.tokens[index]
            if token.kind is not TokenKind.SYMBOL:
                continue
            if token.text in CLOSING:
                expected.append(CLOSING[token.text])
            elif token.text == expected[-1]:
                expected.pop()
                if not expected:
                    self.index = index + 1
                    break
        else:
            raise self.error(f"this parenthesis of {what} is never closed", opening)
        return self.passage.part(opening + 1, self.tokens[self.index - 1].start)

    def rest(self) -> Passage:
        """The remaining text from the next token on."""
        passage = self.passage.part(self.offset, len(self.passage.text))
        self.index = len(self.tokens)
        return passage

    def finish(self, hint: str) -> None:
        """Raise SqlError unless the statement ends here."""
        if self.here:
            raise self.error(f"unexpected {self._found()}; {hint}")
