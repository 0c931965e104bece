"""Addresses of pages that a driver reports."""

from typing import Any

import pytest

from orchestrator.cli.job.attempts import application, ui_of
from orchestrator.model.web_address import application_ui, web_address
from spark_runner.runners.base import SubmissionPlace

STANDALONE = {"backend": "standalone", "cluster": {"ui": "http://one:8080"}}


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:4040", "https://h/proxy/app_1/?a=b", "http://[::1]:4040", "http://h"]
)
def test_a_page_of_spark_is_shown(address: str) -> None:
    assert web_address(address) == address


@pytest.mark.parametrize(
    "value",
    [
        *(None, 5, {}, ["http://h"], "", "h:4040", "javascript:alert(1)", "file:///etc/passwd", "ftp://h"),
        *("http://", "http:///x", "http://ada:secret@h", "http://real@evil", "http://h:99999", "http://h:0"),
        *(
            "http://h/\x1b[2J",
            "http://h/\u202e",
            "http://h/ x",
            "http://h/\n",
            "http://[::1",
            "http://b\u00fc",
        ),
        "http://h/" + "x" * 500,
    ],
)
def test_anything_else_that_a_driver_reports_is_no_page(value: object) -> None:
    assert web_address(value) is None
    assert application_ui(SubmissionPlace("local"), "local-1", {"ui": value}) is None


def test_the_page_at_the_master_goes_before_that_of_the_driver() -> None:
    place = SubmissionPlace.of(STANDALONE)
    assert place is not None
    page = "http://one:8080/app/?appId=app-1"
    assert application_ui(place, "app-1", {"ui": "http://driver:4040"}) == page
    assert application_ui(place, None, {"ui": "http://driver:4040"}) == "http://driver:4040"


def test_a_running_job_is_shown_with_its_application_and_page() -> None:
    progress: dict[str, Any] = {"application_id": "app-1", "ui": "http://driver:4040"}
    ui = ui_of([{"place": {"backend": "local"}}], progress)
    assert list(application(progress, ui)) == ["app-1", "http://driver:4040"]
    assert ui_of([{"place": STANDALONE, "application_id": "app-1"}], {}) == "http://one:8080/app/?appId=app-1"
    assert list(application({"application_id": 5, "ui": []}, ui_of([], {}))) == []
