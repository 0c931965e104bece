"""Properties of a definition as Spark reads them."""

from collections.abc import Iterator, Mapping

FILE_LISTS = (
    *("spark.jars", "spark.files", "spark.submit.pyFiles", "spark.archives"),
    *("spark.yarn.jars", "spark.yarn.jar", "spark.yarn.archive"),
    *("spark.yarn.dist.jars", "spark.yarn.dist.files", "spark.yarn.dist.archives", "spark.yarn.dist.pyFiles"),
)
"""Those that name files of a job, old names too."""

_BLANKS = "".join(map(chr, range(ord(" ") + 1)))  # Java's `trim` takes control characters for blanks


def items(conf: Mapping[str, str], *names: str) -> Iterator[str]:
    """Each item of properties that are lists."""
    for name in names:
        yield from filter(None, (item.strip(_BLANKS) for item in conf.get(name, "").split(",")))
