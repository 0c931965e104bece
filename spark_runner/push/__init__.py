"""Concurrent, ordered, back-pressured delivery of records to a target."""
