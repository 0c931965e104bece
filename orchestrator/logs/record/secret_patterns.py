"""What looks like a secret in text: each kind with the words without which it cannot be there.

Standard library alone: drivers on clusters load this, too. Each repetition is bounded, or takes what nothing
else does: no text of a job may hold a log call up. Names that say secret contain those of Spark's own
`spark.redaction.regex`.
"""

import re
from functools import cache

MASK = "***"

_VALUE = (
    r"""(?:\\{1,8}["'][^"'\\]{0,4096}(?:\\{1,8}["'])?"""  # in quotes that are quoted themselves
    # To the end of a line where it is cut off: the other half is in the next record of a log.
    r"""|"(?:[^"\\]|\\.)*"|"[^\r\n]*|'(?:[^'\\]|\\.)*'|'[^\r\n]*|[^\s,;&"'})\]]+)"""
)
_NAME = (
    r"(?:passw(?:or)?d|passphrase|(?<=[_.-])pass(?![a-z])|pwd|secret|token|(?:api|access|account|private|shared|signing)[._-]?key"
    r"|credentials?|authorization)"
    r"(?![\w.-]{0,128}[_.-]file\b)"  # where a secret is kept is none
)
_SCHEME = r"(?:basic|bearer|apikey|digest|negotiate|ntlm|token|splunk)"

_RULES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (  # of any kind, also cut off; encrypted ones have headers
        ("private key",),
        (
            r"(?i)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
            r"(?:-----END [A-Z0-9 ]{0,40}KEY(?: BLOCK)?-----)?"
        ),
        MASK,
    ),
    (  # a password may hold an @ that is not quoted
        ("://",),
        r"([A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/@:]{0,256}:[^\s/@]{1,4096}@(?:[^\s/@\"',;]{1,256}@){0,8}",
        rf"\1{MASK}@",
    ),
    (("jdbc:oracle",), r"(?i)(jdbc:oracle:[a-z0-9]{1,10}:)[^\s/@]{1,128}/[^\s@]{1,256}@", rf"\1{MASK}@"),
    (  # how Kubernetes writes an environment
        ('"value"',),
        (
            rf"""(?i)("name":\s{{0,8}}"[\w.-]{{0,64}}?{_NAME}[\w.-]{{0,64}}",\s{{0,8}}"value":\s{{0,8}})"""
            r""""(?:[^"\\]|\\.)*\""""
        ),
        rf'\1"{MASK}"',
    ),
    (
        ("pass", "pwd", "secret", "token", "key", "credential", "auth"),
        rf"""(?i)({_NAME}[\w.-]{{0,128}}\\{{0,8}}["']?\s{{0,16}}(?:=|:)\s{{0,16}})({_SCHEME}\s{{1,16}})?"""
        + _VALUE,
        rf"\1{MASK}",
    ),
    (  # of options in SQL; a token is what parsers speak of
        ("pass", "secret", "key"),
        (
            r"(?i)((?:passw(?:or)?d|passphrase|secret|(?:secret|access|api|account)[._-]?key)[\w.-]{0,64}"
            r"[\"'`]?\s{1,8})(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
        ),
        rf"\1'{MASK}'",
    ),
    (  # on a command line
        ("--",),
        rf"(?i)(--?[\w-]{{0,40}}{_NAME}[\w-]{{0,20}}\s{{1,8}})(?!-){_VALUE}",
        rf"\1{MASK}",
    ),
    (  # a pair, as Scala writes it
        ("(",),
        rf"(?i)(\([\w.-]{{0,100}}?{_NAME}[\w.-]{{0,64}},\s?)[^)\s]{{1,512}}",
        rf"\1{MASK}",
    ),
    (("cookie",), r"(?i)((?:set-)?cookie2?:\s{0,8})[^\r\n]{1,4096}", rf"\1{MASK}"),
    (
        ("bearer", "apikey", "negotiate"),
        r"(?i)\b(bearer|apikey|negotiate)\s{1,16}[A-Za-z0-9._~+/-]{8,}=*",
        rf"\1 {MASK}",
    ),
    (  # of base64 alone: "basic statistics" is none
        ("basic",),
        r"\b([Bb]asic|BASIC)\s{1,16}(?=[a-z]{0,256}[A-Z0-9+/=])[A-Za-z0-9+/_-]{8,8192}={0,2}",
        rf"\1 {MASK}",
    ),
    (  # of URLs that are signed, and of a signed request
        ("sig",),
        r"(?i)((?:x-(?:amz|goog|oss)-|[?&;,\s\"']|^)(?:sig|signature)=)[^\s&;,\"'<>]{1,2048}",
        rf"\1{MASK}",
    ),
    (("x-",), r"(?i)(x-(?:amz|goog|oss)-(?:credential|security-token)=)[^\s&;,\"'<>]{1,4096}", rf"\1{MASK}"),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", MASK),
    (
        ("eyj",),
        r"(?<![\w-])eyJ[\w-]{8,8192}\.[\w-]{4,16384}(?:\.[\w-]{0,4096}){0,3}",
        MASK,
    ),
    (
        (
            *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza"),
            *("sk-", "sk_", "hf_", "dapi", "npm_", "pypi-"),
        ),
        (
            r"(?<![\w-])(?:gh[pousr]_\w{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,255}|xox[a-z]-[\w-]{8,255}"
            r"|AIza[\w-]{30,60}|sk-[\w-]{20,255}|sk_live_\w{16,255}|hf_\w{20,255}|dapi[0-9a-f]{32}(?:-\d)?"
            r"|npm_\w{30,64}|pypi-[\w-]{40,1024})"
        ),
        MASK,
    ),
    (  # of ZooKeeper: digest:user:hash, ('digest', 'user:password'), Id(scheme='digest', id='user:hash')
        ("digest",),
        r"""(?i)\b(digest(?::|["'],\s{0,4}(?:id=)?b?["'])[^\s:"']{1,128}:)[^\s,"')\]]{1,512}""",
        rf"\1{MASK}",
    ),
    (("identified",), r"(?i)(identified\s{1,8}by\s{1,8})'(?:[^']|''){0,4096}(?:'|\Z)", rf"\1'{MASK}'"),
)

HINTS = tuple(sorted({hint for hints, _, _ in _RULES for hint in hints} - {"--", "(", "x-", "sig"}))
"""One of them is in every text that holds a secret; the others of the rules are in too many texts."""

_SETTING = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|secret|token|(?:^|[_.-])(?:pass|pwd|sas|sig)"
    r"|(?:secret|access|api|private|account|shared|signing)[._-]?key|connection[._-]?string"
    r"|sasl[._]jaas[._]config)$"
    r"|account\.key\."  # of Azure: the name of the account comes behind it
)
_SHOWN = re.compile(r"(?i)secret|password|token|access[.]?key|passwd|passphrase|credentials$")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret, so that its value is one wherever it stands."""
    return _SETTING.search(name) is not None and name not in _DIRECTORIES


def is_hidden(name: str) -> bool:
    """Whether the value of a setting of this name is not shown: also by Spark's `spark.redaction.regex`."""
    return is_secret(name) or _SHOWN.search(name) is not None


def has_hint(text: str) -> bool:
    """Whether a text may hold a secret: cheap, as most do not."""
    folded = text.lower()
    for hint in HINTS:  # `any` takes twice as long, in each log call
        if hint in folded:
            return True
    return "sig=" in folded or "signature=" in folded


def mask_patterns(text: str) -> str:
    """The text without what looks like a secret."""
    folded = text.lower()
    for hints, pattern, replacement in _RULES:
        if any(hint in folded for hint in hints):
            text = _compiled(pattern).sub(replacement, text)
    return text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # When the first text needs it: a driver that reports nothing wrong starts without.
    return re.compile(pattern)
