"""`make demo-streaming` shows the counts of clicks, and leaves nothing running."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo_streaming import PAGES
from tests.jobs_support import marked_processes

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drawn("tutorials"),
    pytest.mark.campaign,
    pytest.mark.timeout(600),
]  # it waits for windows


def test_counts_of_each_page_arrive_and_all_servers_end(process_mark: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.demo_streaming", "1"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for page in PAGES:
        assert re.search(
            rf"^  clicks:{page} +\S+ \S+ \S+ \S+ clicks=\d+ visitors=\d+", ran.stdout, re.MULTILINE
        )
    assert "the job has ended as SUCCESS" in ran.stdout
    assert marked_processes(process_mark) == []
    assert list(tmp_path.iterdir()) == []
