"""Which changes of a warning are reported again, and how soon."""

import pytest

from orchestrator.handlers.warnings import OTHER_KIND_SECONDS, SAME_KIND_SECONDS, is_other_kind, rest_seconds


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ("0/3 nodes are available", "1/4 nodes are available"),
        ("asked at 2026-11-21T12:00:01.5Z, again in 4.5s", "asked at 2026-11-21T12:00:09Z, again in 60s"),
        ("refused (Audit-Id: 7f3ac1-9)", "refused (Audit-Id: 00b2-1f)"),
        ("pod orch-1f-2-exec-1: no room", "pod orch-1f-2-exec-12: no room"),
    ],
)
def test_other_numbers_times_and_names_are_the_same_warning(words: str, reported: str) -> None:
    assert not is_other_kind(words, reported)
    assert rest_seconds(words, reported) == SAME_KIND_SECONDS


@pytest.mark.parametrize(
    ("words", "reported"), [("no node has room", ""), ("3 nodes are full", "3 nodes are away")]
)
def test_another_reason_is_another_warning(words: str, reported: str) -> None:
    assert is_other_kind(words, reported)
    assert rest_seconds(words, reported) == OTHER_KIND_SECONDS
