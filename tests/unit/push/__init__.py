"""The delivery of records to a target."""
