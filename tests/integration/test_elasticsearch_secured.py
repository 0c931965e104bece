"""Tables in an Elasticsearch with TLS and logins: who may write, and the errors of others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.elasticsearch.source import ElasticsearchSource
from spark_runner.connectors.errors import ConnectorError, Unreachable
from tests.elasticsearch_support import options
from tests.servers.elasticsearch_secured import SHIPPER, USER, SecuredElasticsearch, secured_elasticsearch

RIGHTS = {  # those that docs/connectors/elasticsearch.md names
    "cluster": [],
    "indices": [
        {
            "names": ["mine-*"],
            "privileges": ["index", "delete", "read", "view_index_metadata", "create_index", "maintenance"],
        }
    ],
}
READS = {"names": ["others"], "privileges": ["read"]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SecuredElasticsearch]:
    rights = {**RIGHTS, "indices": [*RIGHTS["indices"], READS]}
    with secured_elasticsearch(tmp_path, rights) as made:
        yield made


@pytest.mark.elasticsearch
@pytest.mark.timeout(300)
def test_a_guarded_server_takes_rows_of_who_has_the_rights_and_errors_name_what_others_lack(
    server: SecuredElasticsearch, spark: SparkSession
) -> None:
    sink, password = ElasticsearchSink(), SHIPPER.partition(":")[2]
    login: dict[str, Any] = {"username": USER, "password": password, "ca_file": server.certificates.ca}
    given = options(server.url, **login, index="mine-1", missing_index="create", refresh=True)
    rows = spark.range(1000)

    request = WriteRequest("append", Writer("run"), ("id",))
    assert sink.write(rows, given, request).rows == 1000
    source = ElasticsearchSource().read(spark, given, rows.schema)
    assert source.select("id").distinct().count() == 1000

    wrong = {**given, "password": "hunter222"}
    with pytest.raises(ConnectorError, match=r"refused: 401 .*; check the options 'username'") as found:
        sink.probe(spark, wrong, rows.schema)
    assert "hunter222" not in str(found.value)
    with pytest.raises(ConnectorError, match=r"is not trusted: .*; check option 'ca_file'") as found:
        sink.probe(spark, {**given, "ca_file": server.certificates.other_ca}, rows.schema)
    assert not isinstance(found.value, Unreachable)
    with pytest.raises(ConnectorError, match=r"option 'ca_file': /none: .*No such file"):
        sink.probe(spark, {**given, "ca_file": "/none"}, rows.schema)
    server.ask("PUT", "/others", {})
    with pytest.raises(ConnectorError, match="user 'shipper' lacks the privilege index for index 'others'"):
        sink.probe(spark, {**given, "index": "others"}, rows.schema)
    assert ElasticsearchSource().read(spark, {**given, "index": "others"}, rows.schema).count() == 0
    with pytest.raises(ConnectorError, match=r"refused: 403 security_exception.*needs more rights"):
        ElasticsearchSource().read(spark, {**given, "index": "of-another"}, rows.schema)
