"""Builds the document of a log record, once, in the thread of the log call."""
