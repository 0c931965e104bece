"""Measurements of the last fifty runs of each job name, for people and for tuning."""
