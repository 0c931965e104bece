"""Patterns of secrets in text, each with words of which one is in every text that matches.

Uses the standard library only, because drivers on clusters import it too. Each repetition is bounded or
possessive, so that no text of a job can block a log call. The names of secrets include those of Spark's
`spark.redaction.regex`.
"""

import re
from functools import cache

MASK = "***"

_DOUBLE, _SINGLE = r"""(?>"(?:[^"\\]++|\\.|"")*+")""", r"""(?>'(?:[^'\\]++|\\.|'')*+')"""
_VALUE = (
    r"""(?:\\{1,8}["'][^"'\\]{0,4096}(?:\\{1,8}["'])?"""  # in escaped quotes
    r'|""[^"\r\n]{1,4096}""'  # in quotes that CSV has doubled
    # To the end of the line if the closing quote is missing: the other half is in the next log record.
    rf"""|{_DOUBLE}|"[^\r\n]*|{_SINGLE}|'[^\r\n]*"""
    # A list; SQL Server puts a value that contains a semicolon in braces.
    r"""|\[[^\[\]\r\n]{1,4096}\]|\{[^{}\r\n]{1,4096}\}|[^\s,;&"'})\]]+)"""
)
_NAME = (  # grouped by first letter: each alternative is tried at each character
    r"(?:p(?:ass(?:w(?:or)?d|phrase|(?:(?<=[_.-]pass)|(?<=sshpass)|(?-i:(?<=[enry]Pass)))(?![a-z])"
    r"|(?<![\w-]pass)(?=\\{0,8}[\"']{1,2}\s?[:=]|=(?!\d{1,9}\b)))|wd|rivate[._-]?key)"
    r"|s(?:ecret|(?:hared|igning|torage)[._-]?key)|token"
    r"|a(?:(?:pi|ccess|ccount|uth|pp(?<![a-z]app))[._-]?key|uthorization)"
    r"|c(?:redentials?|(?:onsumer|lient)[._-]?key(?!store))|(?:encryption|master)[._-]?key"
    r"|keytab[._-]?(?:base64|b64|content|data))"
    r"(?![\w.-]{0,128}[_.-]file\b)"  # the path of a secret's file is no secret
)
_COLOUR = r"(?:\x1b\[[\d;]{0,16}m){0,3}+"
_IS = (  # also in URLs within URLs, and escaped as in JSON for HTML
    rf"""(?:{_COLOUR}\\{{0,8}}+["'`]{{0,2}}\s{{0,16}}+(?:[:=]{{1,2}}>?|->)\s{{0,16}}+{_COLOUR}"""
    r"|\\{1,8}u003[ad]|%3[ad])"
)
# A reference of a script names a secret, and is none; users have to see it in errors.
_REFERENCE = r"secret:[\w.-]{1,63}/[\w.-]{1,253}\}"
_NO_REFERENCE = rf"(?!(?<=\$\{{){_REFERENCE})"  # where a name would begin
_NO_REFERENCES = (  # where a value would begin: the whole value is one
    rf"""(?!["'`]?\$\{{(?:env:\w{{1,255}}\}}|{_REFERENCE})(?:["'`\s,;)\]]|\Z))"""
)
_SCHEME = r"(?:basic|bearer|apikey|digest|negotiate|ntlm|token|splunk|sharedkey(?:lite)?)"

_RULES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (  # of any kind, also truncated; encrypted keys have headers
        ("private key",),
        (
            r"(?i)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
            r"(?:-----END [A-Z0-9 ]{0,40}KEY(?: BLOCK)?-----)?"
        ),
        MASK,
    ),
    (  # a password may contain an unescaped @
        ("://",),
        (  # or a slash; a colon may be followed by a port
            r"([A-Za-z][A-Za-z0-9+.-]{0,20}://)(?:[^\s/@:]{0,256}+:(?:[^\s/@]{1,4096}+@|(?![\d:]{1,5}\b|:)[^\s@\"'<>]{1,256}+@)"
            r"(?:[^\s/@\"',;]{1,256}@){0,8}|(?<=http://)[\w-]{20,255}@|(?<=https://)[\w-]{20,255}@)"
        ),
        rf"\1{MASK}@",
    ),
    (("jdbc:oracle",), r"(?i)(jdbc:oracle:[a-z0-9]{1,10}:)[^\s/@]{1,128}/[^\s@]{1,256}@", rf"\1{MASK}@"),
    (  # environment variables, as Kubernetes writes them
        ("value",),
        (
            rf"""(?i)((?:name|key)(?:\\{{0,8}}["'])?:\s{{0,8}}(?:\\{{0,8}}["'])?[\w.-]{{0,64}}?{_NAME}[\w.-]{{0,64}}"""
            r"""(?:\\{0,8}["'])?,?\s{0,64}(?:\\{0,8}["'])?value(?:\\{0,8}["'])?:\s{0,8})""" + _VALUE
        ),
        rf"\1{MASK}",
    ),
    (
        ("pass", "pwd", "secret", "token", "key", "credential", "auth"),
        rf"""(?i){_NO_REFERENCE}({_NAME}[\w.-]{{0,128}}+{_IS})({_SCHEME}(?:\s|%20){{1,16}})?"""
        + _NO_REFERENCES
        + _VALUE,
        rf"\1{MASK}",
    ),
    (  # options in SQL; messages of parsers contain "token" too
        ("pass", "secret", "key", "token"),
        (
            r"(?i)((?:(?:passw(?:or)?d|passphrase|secret|(?:secret|access|api|account)[._-]?key)[\w.-]{0,64}"
            r"|[(,]\s{0,8}[\"'`]?[\w.-]{0,64}token)[\"'`]?(?:\s{1,8}|\s{0,8}\(\s{0,8}))"
            rf"{_NO_REFERENCES}(?:{_SINGLE}|{_DOUBLE}|`[^`]{{1,4096}}`)"
        ),
        rf"\1'{MASK}'",
    ),
    (  # an option on a command line
        ("--",),
        rf"(?i)((?<![\w-])--?[\w-]{{0,40}}{_NAME}[\w-]{{0,20}}\s{{1,8}})(?!-){_VALUE}",
        rf"\1{MASK}",
    ),
    (  # an option on a command line that is a list
        ("-",),
        rf"(?i)(([\"'])--?[\w.-]{{0,100}}?{_NAME}[\w.-]{{0,64}}\2,\s{{0,8}})(?:{_SINGLE}|{_DOUBLE})",
        rf"\1'{MASK}'",
    ),
    (  # a pair, as Scala or Python write it
        ("(",),
        (
            rf"(?i)(\((?:[\w.-]{{0,100}}?{_NAME}[\w.-]{{0,64}},\s?(?=[^)\s])"
            rf"|([\"'])[\w.-]{{0,100}}?{_NAME}[\w.-]{{0,64}}\2,\s?(?=[\"'])))"
            rf"(?:{_SINGLE}|{_DOUBLE}|[^)\s]{{1,512}})"
        ),
        rf"\1{MASK}",
    ),
    (  # XML, as in Hadoop's configuration files
        ("</",),
        (
            rf"(?i)(<name>\s{{0,8}}[\w.-]{{0,100}}?{_NAME}[\w.-]{{0,64}}\s{{0,8}}</name>\s{{0,64}}<value>"
            rf"|<[\w.:-]{{0,64}}?{_NAME}[\w.-]{{0,64}}>)[^<]{{1,8192}}(?=<)"
        ),
        rf"\1{MASK}",
    ),
    (  # a line of spark-defaults.conf
        ("spark.",),
        (
            rf"(?im)^([ \t]{{0,8}}spark\.[\w.-]{{0,128}}?{_NAME}[\w.-]{{0,64}}[ \t]{{1,64}})"
            r"\S{1,4096}(?=[ \t\r]{0,8}$)"
        ),
        rf"\1{MASK}",
    ),
    (
        ("cookie",),
        rf"(?i)((?:set-)?cookie2?[\"']?:\s{{0,8}}+)(?!\*\*\*)(?:{_DOUBLE}|{_SINGLE}|[^\r\n]{{1,4096}})",
        rf"\1{MASK}",
    ),
    (("auth",), r"(\"auth\":\s{0,8})\"[A-Za-z0-9+/]{12,4096}={0,2}\"", rf'\1"{MASK}"'),  # Docker's config
    (
        ("bearer", "apikey", "negotiate"),
        r"(?i)\b(bearer|apikey|negotiate)\s{1,16}[A-Za-z0-9._~+/-]{8,}=*",
        rf"\1 {MASK}",
    ),
    (  # base64 only: "basic statistics" is no secret
        ("basic",),
        r"\b([Bb]asic|BASIC)\s{1,16}(?=[a-z]{0,256}[A-Z0-9+/=])[A-Za-z0-9+/_-]{8,8192}={0,2}",
        rf"\1 {MASK}",
    ),
    (  # signed URLs and requests
        ("sig",),
        r"(?i)((?:x-(?:amz|goog|oss)-|[?&;,\s\"']|^|%26|%3f|u0026|u003f)(?:sig|signature)(?:=|%3d|\\{1,8}u003d))[^\s&;,\"'<>]{1,2048}",
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
            *(
                "sk-",
                "sk_",
                "rk_",
                "hf_",
                "dapi",
                "npm_",
                "pypi-",
                "gldt-",
                "glrt-",
                "glptt-",
                "xapp-",
                "gocspx-",
            ),
            *("ya29.", "hvs.", "dop_v1_", "dckr_pat_"),
        ),
        (
            r"(?<![\w-])(?:gh[pousr]_\w{20,255}|github_pat_\w{20,255}|gl(?:pat|dt|rt|ptt)-[\w-]{16,255}|xapp-[\w-]{8,255}|xox[a-z]-[\w-]{8,255}"
            r"|AIza[\w-]{30,60}|sk-[\w-]{20,255}|[sr]k_(?:live|test)_\w{16,255}|GOCSPX-[\w-]{20,64}|ya29\.[\w-]{20,2048}|hvs\.[\w-]{20,255}|hf_\w{20,255}|dapi[0-9a-f]{32}(?:-\d)?"
            r"|dop_v1_\w{64}|dckr_pat_[\w-]{20,64}|npm_\w{30,64}|pypi-[\w-]{40,1024})"
        ),
        MASK,
    ),
    (  # ZooKeeper: digest:user:hash, ('digest', 'user:password'), Id(scheme='digest', id='user:hash')
        ("digest",),
        r"""(?i)\b(digest(?::|["'],\s{0,4}(?:id=)?b?["'])[^\s:"']{1,128}:)[^\s,"')\]]{1,512}""",
        rf"\1{MASK}",
    ),
    (
        ("identified",),
        (
            r"(?i)(identified\s{1,8}(?:with\s{1,8}[\w\"'`]{1,64}\s{1,8})?(?:by|as)\s{1,8})"
            r"""(?:'(?:[^']|''){0,4096}(?:'|\Z)|"(?:[^"]|""){0,4096}(?:"|\Z))"""
        ),
        rf"\1'{MASK}'",
    ),
    (("hooks.slack.com",), r"(hooks\.slack\.com/\w{1,16}/)[\w/-]{8,255}", rf"\1{MASK}"),
)

HINTS = tuple(
    sorted(
        {hint for hints, _, _ in _RULES for hint in hints}
        - {"--", "-", "(", "</", "spark.", "value", "x-", "sig"}
    )
)
"""A text with none of these words holds no secret. The other words of the rules are in too many texts."""

_SETTING = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|secret|token|(?:^|[_.-])(?:pass|pwd|sas|sig)"
    r"|(?:secret|access|api|private|account|shared|signing|encryption|master|storage|consumer)[._-]?key"
    r"|sshpass|connection[._-]?string|auth[._-]user[._-]info|encryption[._-]key[._-]list"
    r"|sasl[._]jaas[._]config)$"
    r"|(?:account\.key|client\.secret|azure\.sas)\."  # Azure: the name of the account follows
)
_SIGNED = re.compile(r"sig(?:nature)?(?:=|%3d|\\{1,8}u003d)")
_SHOWN = re.compile(r"(?i)secret|password|token|access[.]?key|passwd|passphrase|credentials$")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret, so that its value is masked wherever it occurs."""
    return _SETTING.search(name) is not None and name not in _DIRECTORIES


def is_hidden(name: str) -> bool:
    """Whether the value of a setting of this name is masked: secrets, and Spark's `spark.redaction.regex`."""
    return is_secret(name) or _SHOWN.search(name) is not None


def has_hint(text: str) -> bool:
    """Whether a text may contain a secret: a cheap test that most texts fail."""
    folded = text.lower()
    for hint in HINTS:  # `any` takes twice as long, and each log call pays it
        if hint in folded:
            return True
    return "sig" in folded and _SIGNED.search(folded) is not None


def mask_patterns(text: str) -> str:
    """The text with everything masked that looks like a secret."""
    folded = text.lower()
    for hints, pattern, replacement in _RULES:
        if any(hint in folded for hint in hints):
            text = _compiled(pattern).sub(replacement, text)
    return text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Compiled with the first text that needs it: a driver without errors starts faster.
    return re.compile(pattern)
