"""Audit events: records of operator changes, created with the change and shipped as log documents."""
