"""The index that rows are written to: whether it is there, and takes rows of the user."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from spark_runner.connectors.elasticsearch.client import Client, pattern_of
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.connectors.templates import columns_of, pieces

_RIGHTS = {"index": "index", "update": "index", "create": "create_doc", "delete": "delete"}
_UNAUTHORIZED, _MISSING, _OK = 401, 404, 200
_FACTS = "*.aliases,*.data_stream,*.settings.index.verified_before_close"  # the last one of a closed index


def check_target(client: Client, options: Mapping[str, Any]) -> bool:
    """Whether the index is there, or need not be; raises ConnectorError if rows cannot be written."""
    index, varies = pattern_of(options["index"]), bool(columns_of(options["index"]))
    if not varies and ("*" in index or "," in index):
        raise ConnectorError(f"'{options['index']}' names several indices; rows are written to one")
    answer = client.ask(*(("HEAD", f"/{index}") if varies else ("GET", f"/{index}?filter_path={_FACTS}")))
    if answer.status == _UNAUTHORIZED or answer.may_change():
        client.check(answer)
    if answer.status == _OK and not varies:
        _check_state(answer.document(), str(options["index"]), str(options["action"]))
    is_there = answer.status != _MISSING or varies
    if not is_there and options["missing_index"] == "fail":
        raise NothingThere(
            f"index '{options['index']}' at {', '.join(options['hosts'])} does not exist; create it, or set"
            " option 'missing_index'"
        )
    _check_rights(client, options)
    name = str(options["pipeline"])
    if name and client.ask("GET", f"/_ingest/pipeline/{quote(name, safe='')}").status == _MISSING:
        raise NothingThere(f"{client.where} has no pipeline '{name}'")
    return is_there or options["missing_index"] != "create"


def _check_state(found: Mapping[str, Any], name: str, action: str) -> None:
    """Raise an error if an index, or the one that an alias writes to, takes no rows."""
    if any(each.get("data_stream") == name for each in found.values()):
        if action != "create":
            raise ConnectorError(f"'{name}' is a data stream, which takes no action '{action}'; use 'create'")
        return
    aliases = {index: each.get("aliases", {}) for index, each in found.items()}
    named = {index: its[name] for index, its in aliases.items() if name in its}
    writes = [index for index, alias in named.items() if alias.get("is_write_index", len(named) == 1)]
    if named and not writes:
        words = f"alias '{name}' has no write index; set 'is_write_index' for one of"
        raise ConnectorError(f"{words}: {', '.join(sorted(named))}")
    for index in writes or found:
        if found[index].get("settings"):
            raise Unreachable(f"index '{index}' is closed, and takes no rows; open it")


def _check_rights(client: Client, options: Mapping[str, Any]) -> None:
    rights = {_RIGHTS[str(options["action"])]} | ({"delete"} if options["delete_column"] else set())
    index = "".join("*" if each.is_column else each.text for each in pieces(options["index"]))
    asked = {"index": [{"names": [index], "privileges": sorted(rights)}]}
    answer = client.ask("POST", "/_security/user/_has_privileges", asked)
    if answer.status != _OK:  # a server without logins
        return
    has = answer.document().get("index", {}).get(index, {})
    if missing := sorted(right for right in rights if has.get(right) is False):
        user = answer.document().get("username", "")
        raise ConnectorError(
            f"{client.where} refused: user '{user}' lacks the privilege {' and '.join(missing)} for index"
            f" '{options['index']}'"
        )
