"""What pip's output and log say about a failure, as one sentence for users."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from orchestrator.logs.record.redaction import REDACTOR
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.protocol.text import shortened
from spark_runner.runners.packages.python import TargetPython

HIDDEN_LOGIN = "****@"
_MAX_CHARACTERS = 400  # of pip's own words in a message
_MAX_PAGES = 1000  # of indexes
_VERSIONS = 5  # in a message
_LOGIN = re.compile(r"(?<=://)[^/\s]+@")  # up to the last @: a password may contain one
_NONE_FOUND = re.compile(
    r"Could not find a version that satisfies the requirement (?P<wanted>.{1,300}?)"
    r"(?: \(from [^()]{1,200}\))? \(from versions: (?P<versions>.*)\)"
)
_CONFLICT = re.compile(r"ERROR: (?P<words>Cannot install .{1,1000}? conflicting dependencies)\.")
_CAUSE = re.compile(r"^ {4}(?P<words>\S.*)$", re.MULTILINE)
_REFUSED_LOGIN = re.compile(r"\b(?P<code>401|403) (?:Error|Client Error)|User for \S+:")
_UNREACHABLE = re.compile(
    r"Retrying \(Retry\(|Connection broken|ConnectionError|ConnectTimeout|ReadTimeout|NewConnectionError|"
    r"Max retries exceeded|SSLError|CERTIFICATE_VERIFY_FAILED|ProxyError|5\d\d Server Error"
)
_BROKEN = re.compile(r"after connection broken by '(?P<why>[^\n]{1,1000}?)': /")
_UNFETCHED = re.compile(r"Could not fetch URL (?P<page>\S{1,2000}): (?P<why>.{1,1000}) - skipping")
_STATUS = re.compile(r"\b(?P<code>[45]\d\d) (?:Client|Server) Error")
_REFUSED, _ABSENT = {401, 403}, {404, 410}
_NO_SPACE = re.compile(r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded")


@dataclass(frozen=True, slots=True)
class UnfetchedPage:
    """A page of an index that pip could not fetch."""

    address: str
    status: int  # of HTTP, 0 without an answer
    why: str

    def is_of(self, package: str) -> bool:
        """Whether it is the page of this package."""
        name = re.sub(r"[-_.]+", "-", package).lower()
        return self.address.rstrip("/").rpartition("/")[2].lower() == name


def without_logins(text: str) -> str:
    """The text without the logins in its addresses."""
    return REDACTOR.mask(_LOGIN.sub(HIDDEN_LOGIN, text))


def unfetched_pages(log: Path) -> list[UnfetchedPage]:
    """The pages that pip could not fetch, from its log."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            found = list(islice(filter(None, map(_UNFETCHED.search, lines)), _MAX_PAGES))
    except OSError:  # pip has ended before it opened its log
        return []
    return [UnfetchedPage(each["page"], _status(each["why"]), without_logins(each["why"])) for each in found]


def _status(why: str) -> int:
    found = _STATUS.search(why)
    return int(found["code"]) if found else 0


def failure(
    text: str,
    requirements: Sequence[str],
    python: TargetPython,
    unfetched: Sequence[UnfetchedPage] = (),
) -> SubmissionError:
    """The error in pip's output: RefusedSubmission where a later try would end the same way.

    Pip treats a package whose page is `unfetched` as one that does not exist.
    """
    if found := _NO_SPACE.search(text):
        return SubmissionError(f"the disk of the host has no space for the packages of the job: {found[0]}")
    if _REFUSED_LOGIN.search(text):
        return SubmissionError(
            "the package index refuses the login of this worker; an operator sets it in pip's configuration"
        )
    if why := _outage(text, unfetched):
        words = shortened(why, _MAX_CHARACTERS)
        return SubmissionError(f"the package index of this worker is unreachable: {words}")
    if found := _CONFLICT.search(text):
        causes = "; ".join(dict.fromkeys(match["words"] for match in _CAUSE.finditer(text, found.end())))
        words = f"{found['words']}: {causes}" if causes else found["words"]
        return RefusedSubmission(f"`requirements`: {shortened(words, _MAX_CHARACTERS)}")
    if found := _NONE_FOUND.search(text):
        return _not_found(found["wanted"], found["versions"], requirements, python, unfetched)
    return SubmissionError(f"pip could not install {', '.join(requirements)}: {last_words(text)}")


def _outage(text: str, unfetched: Sequence[UnfetchedPage]) -> str | None:
    """Why an index did not answer, if one did not."""
    if _UNREACHABLE.search(text):
        broken = _BROKEN.search(text)
        return broken["why"] if broken else last_words(text)
    return next((page.why for page in unfetched if page.status not in _REFUSED | _ABSENT), None)


def _not_found(
    wanted: str,
    versions: str,
    requirements: Sequence[str],
    python: TargetPython,
    unfetched: Sequence[UnfetchedPage],
) -> SubmissionError:
    name = re.split(r"[^\w.-]", wanted, maxsplit=1)[0]
    known = [version.strip() for version in versions.split(",") if version.strip() not in {"", "none"}]
    refused = next((page for page in unfetched if page.status in _REFUSED and page.is_of(name)), None)
    if refused is not None and not known:  # some indexes answer so for packages that they do not have
        return SubmissionError(
            f"the package index of this worker refuses {wanted} ({refused.status}): it has no such package,"
            " or an operator corrects its login in pip's configuration"
        )
    by = "" if any(each.startswith(name) for each in requirements) else ", which another package needs"
    if not known:
        return RefusedSubmission(
            f"`requirements`: the package index of this worker has no wheel of {wanted}{by} for Python"
            f" {python.version} on {python.platform}; check the name. Source distributions are not built"
        )
    asked = re.search(r"[=<>~!]=?\s*([\w.]+)", wanted)
    near = difflib.get_close_matches(asked[1], known, n=1, cutoff=0.1) if asked else []
    hint = f"; the nearest is {near[0]}" if near else ""
    latest = ", ".join(known[-_VERSIONS:])
    return RefusedSubmission(f"`requirements`: there is no {wanted}{by}{hint}; the latest are {latest}")


def last_words(text: str) -> str:
    """The line of pip's output that says most."""
    return shortened(next(_errors(text), "it printed nothing"), _MAX_CHARACTERS)


def _errors(text: str) -> Iterator[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    yield from (line.removeprefix("ERROR: ") for line in reversed(lines) if line.startswith("ERROR: "))
    yield from (line.partition(": ")[2] or line for line in lines if line.startswith("WARNING: "))
    yield from reversed(lines)
