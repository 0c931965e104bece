"""The systems a script reads from and writes to: one option model, source and sink for each."""
