"""From what a program logs to a document: built once, in the thread of whoever logs."""
