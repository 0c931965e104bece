"""Fixtures of the acceptance tests."""

from tests.acceptance.support import desk, shared_desk

__all__ = ["desk", "shared_desk"]
