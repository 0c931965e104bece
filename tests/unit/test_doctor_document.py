"""docs/doctor.md names each finding, as bad as it is."""

import re
from pathlib import Path

from orchestrator.doctor.damage import KINDS
from orchestrator.doctor.findings import Kind
from queues.scrubber import Repair

DOCUMENT = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")


def test_each_finding_is_explained() -> None:
    explained = dict(re.findall(r"^\| `([a-z-]+)` \((error|warning|note)", DOCUMENT, re.MULTILINE))
    expected = {kind.value: kind.severity.value for kind in Kind} | {Kind.ZOOKEEPER_LATENCY.value: "note"}
    assert explained == expected


def test_each_that_is_mended_is_listed() -> None:
    table = DOCUMENT.partition("## What --fix does")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE))
    assert listed == {KINDS[mend][0].value for mend in Repair} | {
        Kind.ORPHAN_LOCK.value,
        Kind.STALE_STOP.value,
        Kind.STALE_SLOT.value,
        Kind.OPEN_NODES.value,
    }
