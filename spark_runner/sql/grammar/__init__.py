"""Grammar of scripts: the statements, and the clauses and names that are read without Spark."""
