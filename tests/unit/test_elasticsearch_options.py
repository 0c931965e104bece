"""The options of tables in Elasticsearch, as a script writes them."""

import pytest

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import Guarantee, validate

COLUMNS = ("page", "n", "gone")
FINE = {"hosts": "http://h:9200", "index": "clicks"}


def test_names_of_other_engines_mean_the_same_options() -> None:
    given = {
        "es.nodes": "a:9200;https://b:9200/",
        "es.resource": "clicks-{page}",
        "es.write.operation": "upsert",
        "es.net.http.auth.user": "u",
        "es.net.http.auth.pass": "p",
        "sink.bulk-flush.max-size": "2mb",
        "sink.bulk-flush.interval": "1s",
        "es.query": '{"query": {"match_all": {}}}',
    }
    found = validate("elasticsearch", given, COLUMNS).model_dump()
    assert found["hosts"] == ("http://a:9200", "https://b:9200")
    names = ("index", "action", "username", "password", "max_batch_bytes", "query")
    assert [found[name] for name in names] == [
        *("clicks-{page}", "update", "u", "p", 2 * 1024 * 1024, '{"match_all": {}}')
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index": "i"}, "needs option 'hosts'"),
        ({"hosts": "h:9200"}, "needs option 'index'"),
        ({**FINE, "hosts": "ftp://h"}, "each host is a URL"),
        ({**FINE, "hosts": "https://u:hunter2@h:9200"}, "it holds a password"),
        ({**FINE, "index": "{pag}"}, "option 'index' names 'pag', which is not a column; did you mean"),
        ({**FINE, "routing": "{x}"}, "option 'routing' names 'x'"),
        ({**FINE, "version_column": "x"}, "option 'version_column' names 'x'"),
        ({**FINE, "version_column": "n", "action": "create"}, "action 'create' has no versions"),
        ({**FINE, "delete_column": "gone", "action": "delete"}, "deletes each row already"),
        ({**FINE, "query": "page:home"}, "it is no JSON"),
        ({**FINE, "query": "[]"}, "it is no JSON object"),
        ({**FINE, "password": "x"}, "option 'password' needs option 'username'"),
        ({**FINE, "api_key": "x", "username": "u"}, "not both"),
        (
            {**FINE, "index": "c-{page}", "missing_index": "create"},
            "with columns in its name is created by the server",
        ),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as found:
        validate("elasticsearch", options, COLUMNS)
    assert "hunter2" not in str(found.value)


def test_rows_with_a_key_are_written_once() -> None:
    found = validate("elasticsearch", FINE, COLUMNS)
    assert found.replaces_rows()
    assert found.guarantee(has_primary_key=True) is Guarantee.EXACTLY_ONCE
    assert found.guarantee(has_primary_key=False) is Guarantee.AT_LEAST_ONCE
    assert found.place() == "elasticsearch://http://h:9200/clicks"
