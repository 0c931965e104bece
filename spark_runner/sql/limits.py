"""How large a script may be: compiling stays linear in its text, and no script ends who compiles it."""

MAX_SCRIPT_CHARACTERS = 384 * 1024  # as the definition that carries it
MAX_STATEMENTS = 1_000
MAX_NESTING = 200  # open parentheses; the parser of Spark ends in a stack overflow some thousands deep
MAX_EXPANDED_CHARACTERS = 1024 * 1024  # of all statements, with the values of the variables
MAX_VIEW_DEPTH = 100  # as spark.sql.view.maxNestedViewDepth has it
MAX_TABLE_READS = 10_000  # by one query through all its views; Spark puts the text of a view in at each use
MAX_PATH_CHARACTERS = 4_096  # PATH_MAX of Linux; more no file system takes
