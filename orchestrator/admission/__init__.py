"""Admission control: slots of capped pools and names, and pressure and memory of the host."""
