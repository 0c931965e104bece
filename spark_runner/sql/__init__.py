"""Push jobs written in SQL: script -> statements -> plan (JSON) -> execution in a Spark driver."""
