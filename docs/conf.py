"""The documentation site: `make docs` builds it from the Markdown files, which a Git forge shows as well.

The source folder is the project, so that a link means the same file on the site and on a forge. The contents
of the site are the links in docs/README.md.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from pygments.lexers.sql import SqlLexer
from pygments.token import Name
from sphinx.application import Sphinx

PROJECT = Path(__file__).parent.parent
_PAGES = {"CHANGELOG.md", "CONTRIBUTING.md", "README.md", "deploy", "docs"}
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_LINK = re.compile(r"^\| \[([^\]]+)\]\(([^)#:]+)\.md\)", re.MULTILINE)
_OF_FORGE = re.compile(r"^\[[^\]]+\]: \.\./\.\./.*\n", re.MULTILINE)  # pages that exist there alone
_RELEASE = re.compile(r"^## \[([^\]]+)\]", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([\w-]+)"')
_CONNECTOR = re.compile(r"\]\((connectors/[^)#]+)\.md\)")

project = "spark-job-orchestrator"
version = release = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
language = "en"
smartquotes = False  # quotes and dashes in text are often parts of commands

extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["*.md", "deploy/*.md", "docs/*.md", "docs/connectors/*.md"]
# The other folders of the project have many files: they are not even listed.
exclude_patterns = [path.name for path in PROJECT.iterdir() if path.name not in _PAGES]
nitpicky = True

myst_heading_anchors = 4  # as on a forge; a link to an anchor that does not exist is a warning

html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_extra_path = ["site/index.html"]  # the address of the site itself leads to the index
html_show_copyright = html_show_sphinx = html_copy_source = False
pygments_style, pygments_dark_style = "default", "github-dark"


class ScriptLexer(SqlLexer):
    """SQL with the variables of scripts: `${name:-default}`."""

    tokens = {**SqlLexer.tokens, "root": [(r"\$\{[^}]*\}", Name.Variable), *SqlLexer.tokens["root"]]}  # noqa: RUF012 - as in pygments


def _adapt(_: Sphinx, page: str, source: list[str]) -> None:
    """Make the contents of the site from the tables of docs/README.md, and those of the connectors.

    The changelog links its releases to pages of the forge, which a site does not have.
    """
    if page == root_doc:
        head, *parts = _SECTION.split(source[0])
        for caption, text in zip(parts[::2], parts[1::2], strict=True):
            entries = [f"{title} <{path}>" for title, path in _LINK.findall(text)]
            head += f"## {caption}\n{text}{_toctree(entries, caption)}"
        source[0] = head
    elif page == "CHANGELOG":
        source[0] = _RELEASE.sub(r"## \1", _OF_FORGE.sub("", source[0]))
    elif page == "docs/connectors":
        source[0] += _toctree(dict.fromkeys(_CONNECTOR.findall(source[0])))


def _toctree(entries: Iterable[str], caption: str = "") -> str:
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n" + "\n".join(entries) + "\n```\n\n"


def _keep_anchors(app: Sphinx, document: nodes.document) -> None:
    """Let links lead to `<a id="...">`, which a page has where a heading was renamed or is missing."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for raw in document.findall(nodes.raw):
        for anchor in _ANCHOR.findall(raw.astext()):
            slugs.setdefault(anchor, (raw.line, anchor, ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what this site adds to Sphinx."""
    app.connect("source-read", _adapt)
    app.connect("doctree-read", _keep_anchors)
    app.add_lexer("sql", ScriptLexer)
    return {"parallel_read_safe": True}
