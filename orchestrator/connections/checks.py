"""Checks a connection before it is stored: its name, its options, and that it holds no secret."""

import re
from collections.abc import Mapping

from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.record.secret_patterns import is_hidden
from orchestrator.model.errors import InvalidConnection
from spark_runner.connectors import registry
from spark_runner.connectors.errors import ConnectorError, OptionError
from spark_runner.connectors.options import options_of, validate
from spark_runner.protocol.text import did_you_mean, shortened
from spark_runner.references.reference import InvalidReference, parse_pieces, references_in
from spark_runner.sql.compiler.connections import Connection

MAX_CONNECTIONS = 1_000
MAX_CONNECTION_BYTES = 16 * 1024  # two hundred options of a usual length
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_SHOWN = 100


def check_name(name: str) -> str:
    """The name; raises InvalidConnection for one that cannot name a node."""
    if not _NAME.fullmatch(name):
        raise InvalidConnection(
            f"{shortened(name, _SHOWN)!r} cannot name a connection:"
            " use up to 64 letters, digits, '.', '_' and '-'"
        )
    return name


def checked_connection(name: str, connector: str, options: Mapping[str, str]) -> Connection:
    """The connection with the option names of its connector; raises InvalidConnection with all errors."""
    check_name(name)
    connector = connector.lower()
    _check_connector(connector)
    errors = _option_errors(connector, options)
    for key, value in options.items():
        errors += _value_errors(name, key, value)
    if errors:
        raise InvalidConnection(f"connection {name!r}: " + "\n".join(errors))
    model = options_of(connector)
    return Connection(
        name, connector, {model.option_named(key) or key: each for key, each in options.items()}
    )


def _check_connector(connector: str) -> None:
    try:
        if registry.find(connector) is not None:
            options_of(connector)
            return
        known = registry.names()
    except (ConnectorError, OptionError) as error:
        raise InvalidConnection(str(error)) from error
    hint = did_you_mean(connector, known) or f"; known are {', '.join(known)}"
    raise InvalidConnection(f"unknown connector {shortened(connector, _SHOWN)!r}{hint}")


def _option_errors(connector: str, options: Mapping[str, str]) -> list[str]:
    """The errors of single options; others may be given by each table."""
    try:
        validate(connector, options)
    except OptionError as error:
        return [str(each) for each in (error, *error.others) if each.option]
    return []


def _value_errors(name: str, key: str, value: str) -> list[str]:
    try:
        references = references_in(parse_pieces(value))
    except InvalidReference as error:
        return [f"option '{key}': {error}"]
    bare = value
    for reference in references:
        bare = bare.replace(str(reference), "")
    is_secret = is_hidden(key) and bool(bare)
    if is_secret or REDACTOR.mask(bare) != bare:
        example = f"${{secret:{name}/{key}}}"
        message = (
            f"option '{key}' holds a secret, which all readers of ZooKeeper would see; write a reference"
            f" such as '{key}={example}', and let an operator add the scope to references.secrets"
        )
        return [message]
    if references and key.lower() == "path":
        return [f"option '{key}' decides where the rows are, so it cannot hold {references[0]}"]
    return []
