"""docs/doctor.md names each finding with its severity."""

import re
from pathlib import Path

from orchestrator.doctor.damage import KINDS
from orchestrator.doctor.findings import FindingKind
from queues.admin.scrubber import Repair

DOCUMENT = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")


def test_each_finding_is_explained() -> None:
    explained = dict(re.findall(r"^\| `([a-z-]+)` \((error|warning|note)", DOCUMENT, re.MULTILINE))
    expected = {kind.value: kind.severity.value for kind in FindingKind} | {
        FindingKind.ZOOKEEPER_LATENCY.value: "note"
    }
    assert explained == expected


def test_each_finding_that_is_repaired_is_listed() -> None:
    table = DOCUMENT.partition("## What --fix does")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE))
    assert listed == {KINDS[repair][0].value for repair in Repair} | {
        FindingKind.ORPHAN_LOCK.value,
        FindingKind.STALE_STOP.value,
        FindingKind.STALE_SLOT.value,
        FindingKind.OPEN_NODES.value,
    }
