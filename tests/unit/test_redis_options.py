"""The options of tables in Redis, as a script writes them."""

from contextlib import nullcontext

import pytest

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import Guarantee, validate


def test_names_of_other_engines_mean_the_same_options() -> None:
    given = {
        "redis-mode": "Sentinel",
        "sentinel.nodes": "a:26379, b:26379",
        "sentinel.master": "main",
        "command": "lpush",
        "key-template": "clicks:{page}",
        "value-template": "{n}",
        "key.ttl": "60",
        "maxTotal": "4",
        "maxIdle": "2",
        "minIdle": "1",
        "connection.timeout": "2",
        "db-num": "3",
    }
    found = validate("redis", given, ("page", "n")).model_dump()
    assert found["nodes"] == ("a:26379", "b:26379")
    assert [found[name] for name in ("mode", "master_name", "command", "key", "value", "ttl")] == [
        *("sentinel", "main", "LPUSH", "clicks:{page}", "{n}", 60)
    ]
    assert [
        found[name] for name in ("connections", "max_idle", "min_idle", "connect_timeout", "database")
    ] == [*(4, 2, 1, 2.0, 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "k"}, "needs option 'host'"),
        ({"mode": "cluster", "key": "k"}, "mode 'cluster' of connector 'redis' needs option 'nodes'"),
        ({"mode": "sentinel", "nodes": "a", "key": "k"}, "needs option 'master_name'"),
        ({"mode": "cluster", "nodes": "a", "database": "1", "key": "k"}, "has only database 0"),
        ({"host": "h"}, "needs option 'key'"),
        (
            {"host": "h", "key": "{pag}"},
            "option 'key' names 'pag', which is not a column; did you mean",
        ),
        ({"host": "h", "key": "{page"}, "'{' has no counterpart"),
        ({"host": "h", "key": "k", "command": "ZADD"}, "command 'ZADD' needs option 'score'"),
        ({"host": "h", "key": "k", "command": "ZADD", "score": "x"}, "option 'score' names 'x'"),
        (
            {"host": "h", "key": "k", "command": "DEL"},
            "'command' of connector 'redis' cannot be 'DEL'",
        ),
        ({"host": "h", "key": "k", "pasword": "x"}, "unknown option 'pasword'.*did you mean 'password'"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        validate("redis", options, ("page", "n"))


@pytest.mark.parametrize(
    ("option", "further"),
    [
        ("value", {"command": "HSET"}),
        ("value", {"command": "XADD"}),
        ("field", {"command": "SET"}),
        ("score", {"command": "SADD"}),
        ("max_length", {"command": "LPUSH"}),
        ("nodes", {}),
        ("master_name", {}),
        ("sentinel_password", {}),
        ("ca_file", {}),
        ("username", {}),
        ("host", {"mode": "cluster", "nodes": "a"}),
        ("master_name", {"mode": "cluster", "nodes": "a"}),
    ],
)
def test_an_option_without_effect_is_refused(option: str, further: dict[str, str]) -> None:
    options = {"key": "k", "host": "h", **further, option: "9"}
    if option != "host" and "mode" in further:
        options.pop("host")
    with pytest.raises(OptionError, match=f"option '{option}' has an effect only"):
        validate("redis", options)


@pytest.mark.parametrize(
    ("options", "primary_key", "message"),
    [
        ({"key": "p:{page}"}, ("PAGE",), ""),
        ({"key": "p:{page}", "command": "HSET", "field": "{n}", "value": "{n}"}, ("page", "n"), ""),
        ({"key": "p:*"}, ("page",), ""),
        ({"key": "p:{page}", "command": "LPUSH"}, ("n",), ""),  # an INSERT refuses it
        ({"key": "p:{page}"}, ("page", "n"), r"the PRIMARY KEY is \(page, n\), .* the columns \(page\)"),
        ({"key": "all"}, ("page",), r"the PRIMARY KEY is \(page\), and the key in Redis has no column"),
    ],
)
def test_the_primary_key_is_the_columns_of_the_key(
    options: dict[str, str], primary_key: tuple[str, ...], message: str
) -> None:
    found = validate("redis", {"host": "h", **options}, ("page", "n"))
    with pytest.raises(OptionError, match=message) if message else nullcontext():
        found.check_primary_key(primary_key)


@pytest.mark.parametrize(
    ("command", "guarantee", "upserts"),
    [
        ("SET", Guarantee.EXACTLY_ONCE, True),
        ("HSET", Guarantee.EXACTLY_ONCE, True),
        ("SADD", Guarantee.EXACTLY_ONCE, False),
        ("ZADD", Guarantee.EXACTLY_ONCE, False),
        ("LPUSH", Guarantee.AT_LEAST_ONCE, False),
        ("XADD", Guarantee.AT_LEAST_ONCE, False),
    ],
)
def test_a_row_that_arrives_twice_doubles_only_in_lists_and_streams(
    command: str, guarantee: Guarantee, upserts: bool
) -> None:
    given = {"host": "h", "key": "k", "command": command} | ({"score": "n"} if command == "ZADD" else {})
    found = validate("redis", given, ("page", "n"))
    assert found.guarantee(has_primary_key=False) is guarantee
    assert found.replaces_rows() is upserts


def test_tables_of_the_same_keys_have_the_same_place() -> None:
    one, other = (validate("redis", {"host": "h", "key": key}) for key in ("a:{x}", "b:{x}"))
    assert one.place() == "redis://h:6379/0/a:{x}" != other.place()
