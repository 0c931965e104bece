"""The error of a script, shown at the place in the user's file."""

from spark_runner.errors import SparkRunnerError


class SqlError(SparkRunnerError):
    """The script is wrong, or what it asked for failed, at `line` and `column` of `file` (both from 1)."""

    def __init__(self, message: str, *, file: str, line: int, column: int, source_line: str) -> None:
        super().__init__(message, file, line, column, source_line)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.source_line = source_line

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.message, self.file, self.line, self.column, self.source_line)

    def __str__(self) -> str:
        """The message, then the line of the script with a caret below the place."""
        number = str(self.line)
        # Tabs stay tabs, so that the caret stands below its character whatever a tab's width is.
        indent = "".join("\t" if char == "\t" else " " for char in self.source_line[: self.column - 1])
        return (
            f"{self.file}:{self.line}:{self.column}: {self.message}\n"
            f"  {number} | {self.source_line}\n"
            f"  {' ' * len(number)} | {indent}^"
        )


def _rebuild(message: str, file: str, line: int, column: int, source_line: str) -> SqlError:
    """Make the error again in another process; keyword arguments do not survive pickling by themselves."""
    return SqlError(message, file=file, line=line, column=column, source_line=source_line)
