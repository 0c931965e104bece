"""Limits of a script: compilation stays linear in its text, and no script can exhaust the compiler."""

MAX_SCRIPT_CHARACTERS = 384 * 1024  # like the definition that carries it
MAX_STATEMENTS = 1_000
MAX_NESTING = 200  # open parentheses; the parser of Spark overflows its stack at some thousands
MAX_EXPANDED_CHARACTERS = 1024 * 1024  # of all statements, with variables replaced
MAX_VIEW_DEPTH = 100  # the default of spark.sql.view.maxNestedViewDepth
MAX_TABLE_READS = 10_000  # by one query through all its views; Spark inserts the text of a view at each use
MAX_PATH_CHARACTERS = 4_096  # PATH_MAX of Linux; no file system accepts more
