"""The index template for manual installation is the one that shippers install."""

from pathlib import Path

from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.indices import template_file

FILE = Path(__file__).parents[2] / "deploy" / "index-template.json"


def test_the_template_in_deploy_is_that_of_the_default_alias() -> None:
    assert FILE.read_text("utf-8") == template_file(LogSettings().alias)
