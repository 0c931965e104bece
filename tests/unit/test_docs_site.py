"""The documentation site: links lead somewhere, search finds words, and pages load nothing from elsewhere."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

PROJECT = Path(__file__).parents[2]
# One process builds it; loadgroup sends all tests of this file there.
pytestmark = [pytest.mark.xdist_group("documentation"), pytest.mark.timeout(300)]
_LOADED = {"img": "src", "link": "href", "script": "src", "source": "src", "iframe": "src", "video": "src"}
"""What a browser fetches without a click, by element."""


class Page(HTMLParser):
    """The addresses of one page, and the anchors in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded = set[str]()
        self.linked = set[str]()
        self.anchors = set[str]()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if address := found.get(_LOADED.get(tag, "")):
            self.loaded.add(address)
        if tag == "a" and (address := found.get("href")):
            self.linked.add(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: warnings are errors."""
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        ["make", "--dry-run", "docs", f"SITE={folder}", "VENV=/venv"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    (command,) = (line for line in made.stdout.splitlines() if "-m sphinx" in line)
    arguments = command.split()[1:]
    built = subprocess.run(
        [sys.executable, *arguments], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_each_markdown_file_of_the_documentation_is_a_page(site: Path) -> None:
    sources = {*PROJECT.glob("*.md"), *PROJECT.glob("deploy/*.md"), *PROJECT.glob("docs/**/*.md")}
    missing = [
        path for path in sources if not (site / path.relative_to(PROJECT)).with_suffix(".html").is_file()
    ]
    assert not missing


def test_each_link_within_the_site_leads_to_a_file_and_an_anchor(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for address in page.linked | page.loaded:
            parts = urlsplit(address)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = {"", *pages[target].anchors} if target in pages else {parts.fragment}
            if not target.exists() or unquote(parts.fragment) not in anchors:
                broken.append((path.name, address))
    assert not broken


def test_a_page_loads_nothing_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    assert not [
        (path.name, address)
        for path, page in pages.items()
        for address in page.loaded
        if urlsplit(address).netloc
    ]
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]*", styles)


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("quarantin", "docs/bad-rows"),
        ("high_wat", "docs/settings"),
        ("exit", "docs/errors"),
        ("adopt", "docs/glossary"),
        ("outofmemoryerror", "docs/troubleshooting"),
    ],
)
def test_the_index_of_the_search_finds_a_page_by_its_words(site: Path, words: str, page: str) -> None:
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.partition("Search.setIndex(")[2].rpartition(")")[0])
    found = set[int]()
    for term, pages in chain(index["titleterms"].items(), index["terms"].items()):
        if term.startswith(words):
            found |= set(pages) if isinstance(pages, list) else {pages}
    assert page in {index["docnames"][number] for number in found}


def test_the_address_of_the_site_leads_to_the_index(site: Path) -> None:
    found = re.search(r"url=([^\"]+)", (site / "index.html").read_text("utf-8"))
    assert found is not None
    assert (site / found[1]).is_file()
