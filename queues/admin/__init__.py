"""Inspection, operations of an operator, dead letters and the scrubber."""
