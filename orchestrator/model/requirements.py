"""The field `requirements` of a definition: Python packages as in PEP 508, without addresses and options."""

MAX_REQUIREMENTS = 200
_MAX_CHARACTERS = 300


def checked_requirements(values: tuple[str, ...]) -> tuple[str, ...]:
    """The requirements in their usual form; raises ValueError for one that a job cannot have."""
    if not values:
        return values
    if len(values) > MAX_REQUIREMENTS:
        message = f"{len(values)} packages, the limit is {MAX_REQUIREMENTS}"
        raise ValueError(message)
    checked, seen = tuple(map(_checked, values)), dict[str, str]()
    for value in checked:
        name = name_of(value)
        if name in seen and ";" not in value:  # with a marker each may be for another platform
            message = f"{seen[name]!r} and {value!r} are the same package: keep one"
            raise ValueError(message)
        seen[name] = value
    return checked


def name_of(requirement: str) -> str:
    """The name of the package of a checked requirement, in its usual form: lower case, with `-`."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - every command loads this module
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - likewise

    return canonicalize_name(Requirement(requirement).name)


def _checked(value: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - likewise

    example = "write the name of a package and its version, such as requests==2.32.3"
    shown = repr(value[:_MAX_CHARACTERS])
    if len(value) > _MAX_CHARACTERS or not value.isprintable():
        message = f"{shown} is not a package: {example}"
        raise ValueError(message)
    if value.lstrip().startswith("-"):
        message = (
            f"{shown} is an option of pip, which only an operator sets, in pip's configuration: {example}"
        )
        raise ValueError(message)
    try:
        found = Requirement(value)
    except InvalidRequirement as error:
        if "/" in value or value.startswith("."):
            message = f"{shown} is a file or address: {example}; files of your own belong in spark.py_files"
        else:
            message = f"{shown} is not a package: {example}"
        raise ValueError(message) from error
    if found.url is not None:
        message = f"{shown} names an address; packages come from the index of the worker: {example}"
        raise ValueError(message)
    if any(
        each.operator == "===" for each in found.specifier
    ):  # it takes any text, which pip reads as a path
        message = f"{shown} compares with ===, which takes the path of a file too; write =="
        raise ValueError(message)
    return str(found)
