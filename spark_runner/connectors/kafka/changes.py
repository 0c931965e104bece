"""Names of the format of Debezium's change events, for the compiler and for the driver."""

DEBEZIUM = "debezium-json"
"""The value of option `format`."""

CHANGE_METADATA = (
    *("op", "deleted", "ingestion_timestamp"),
    *("source_timestamp", "source_database", "source_schema", "source_table"),
)
"""What an event says beside the row, for columns METADATA FROM."""
