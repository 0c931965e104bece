"""Whose error it is when rows are refused: that of the row, or of its index or the cluster."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.elasticsearch_rows import changed, row, write
from tests.elasticsearch_support import Indices, options
from tests.log_proxy import Asked, LogProxy, Said
from tests.stream_driver import plan_of
from tests.waiting import wait_until


@contextmanager
def setting(indices: Indices, name: str, value: object) -> Iterator[None]:
    """A setting of the cluster, for a while."""
    indices.ask("PUT", "/_cluster/settings", {"persistent": {name: value}})
    try:
        yield
    finally:
        indices.ask("PUT", "/_cluster/settings", {"persistent": {name: None}})


def alias(indices: Indices, name: str, **of: dict[str, Any]) -> str:
    """An alias of indices, which are created."""
    named = f"{indices.prefix}-{name}"
    each = {indices.new(index): more for index, more in of.items()}
    actions = [{"add": {"index": index, "alias": named, **more}} for index, more in each.items()]
    indices.ask("POST", "/_aliases", {"actions": actions})
    return named


def errors_of(kind: str, status: int = 400) -> Callable[[Asked], Said]:
    """A rule: the server has this error for each row."""
    item = {"index": {"status": status, "error": {"type": kind, "reason": "by the test"}}}

    def rule(asked: Asked) -> Said:
        if not asked.is_bulk:
            return asked.forward()
        return Said.document(200, {"errors": True, "items": [item] * len(asked.records)})

    return rule


def test_a_closed_index_makes_a_task_wait(indices: Indices, elasticsearch_proxy: LogProxy) -> None:
    index, proxy = indices.new("closed"), elasticsearch_proxy
    indices.ask("POST", f"/{index}/_close")
    with pytest.raises(Unreachable, match="does not take rows: index_closed_exception"):
        write(indices.url, [row(index, 1)], index=index, retry_timeout=0.3)
    thread = threading.Thread(target=write, args=(proxy.url, [row(index, 1)]), kwargs={"index": index})
    thread.start()
    wait_until(lambda: len(proxy.bulks) > 2, 20, "the task has tried again")
    indices.ask("POST", f"/{index}/_open")
    thread.join(20)
    assert indices.count(index) == 1


def test_a_cluster_with_as_many_shards_as_it_may_have_makes_a_task_wait(indices: Indices) -> None:
    index = indices.new("first")
    with (
        setting(indices, "cluster.max_shards_per_node", 1),
        pytest.raises(Unreachable, match=r"does not take rows: validation_exception: .*maximum .*shards"),
    ):
        write(indices.url, [row(f"{index}-2", 1)], index=index, retry_timeout=0.3)


def test_an_index_that_is_deleted_meanwhile_is_named_as_missing(indices: Indices) -> None:
    index = f"{indices.prefix}-gone"
    with (
        setting(indices, "action.auto_create_index", f"-{indices.prefix}*,+*"),
        pytest.raises(NothingThere, match="index_not_found_exception: no such index"),
    ):
        write(indices.url, [row(index, 1), row(index, 2)], index=index)


def test_an_alias_without_a_write_index_fails_a_write_of_any_size(indices: Indices) -> None:
    name = alias(indices, "names", one={}, two={})
    for rows in (1, 100):
        with pytest.raises(
            ConnectorError, match=f"alias '{name}' has no write index.* one of: .*-one, .*-two"
        ):
            write(indices.url, [row(name, number) for number in range(rows)], index=name)


def test_a_pipeline_that_is_deleted_meanwhile_is_named_as_missing(indices: Indices) -> None:
    index = indices.new("piped")
    with pytest.raises(NothingThere, match="has no pipeline 'gone'"):
        write(indices.url, [row(index, 1)], index=index, pipeline="gone")


def test_a_target_that_takes_no_rows_is_named_before_the_write(
    indices: Indices, spark: SparkSession, elasticsearch_proxy: LogProxy
) -> None:
    def probe(index: str, url: str = indices.url, **more: Any) -> None:
        ElasticsearchSink().probe(spark, options(url, index=index, **more), spark.range(1).schema)

    closed = indices.new("closed")
    indices.ask("POST", f"/{closed}/_close")
    with pytest.raises(Unreachable, match=f"index '{closed}' is closed"):
        probe(closed)
    shut = alias(indices, "of-shut", shut={})
    indices.ask("POST", f"/{indices.prefix}-shut/_close")
    with pytest.raises(Unreachable, match=r"index '.*-shut' is closed"):
        probe(shut)
    with pytest.raises(ConnectorError, match=r"'.*-never' has no write index; .* one of: .*-first"):
        probe(alias(indices, "never", first={"is_write_index": False}))
    probe(alias(indices, "chosen", old={}, new={"is_write_index": True}))
    indices.ask("POST", f"/{indices.prefix}-old/_close")  # rows do not go there
    probe(f"{indices.prefix}-chosen")
    stream = indices.new("stream")
    backing = {f".ds-{stream}": {"aliases": {}, "data_stream": stream}}
    elasticsearch_proxy.rule = lambda asked: (
        Said.document(200, backing) if asked.path.startswith(f"/{stream}?") else asked.forward()
    )
    with pytest.raises(ConnectorError, match="is a data stream, which takes no action 'index'; use 'create'"):
        probe(stream, elasticsearch_proxy.url)
    probe(stream, elasticsearch_proxy.url, action="create")


def test_a_row_whose_own_index_takes_no_rows_is_rejected(indices: Indices) -> None:
    good, closed, banned = indices.new("d-1"), indices.new("d-2"), f"{indices.prefix}-no"
    indices.ask("POST", f"/{closed}/_close")
    given = {"index": f"{indices.prefix}-{{day}}", "retry_timeout": 20}
    with setting(indices, "action.auto_create_index", f"-{banned}*,+*"):
        rows = [row(good, 1), row(closed, 2), row(banned, 3), row(f"{indices.prefix}-Ä", 4), row(good, 5)]
        rejected = write(indices.url, rows, **given)
        kinds = {text: reason.partition(":")[0] for reason, text in rejected}
        assert kinds == {
            rows[1]: "index_closed_exception",
            rows[2]: "index_not_found_exception",
            rows[3]: "invalid_index_name_exception",
        }
        with pytest.raises(Unreachable, match="index_closed_exception"):
            write(indices.url, [row(closed, 2)], **{**given, "retry_timeout": 0.3})
        with pytest.raises(NothingThere, match="index_not_found_exception"):
            write(indices.url, [row(banned, number) for number in range(30)], **given)
    with pytest.raises(ConnectorError, match="invalid_index_name_exception"):
        write(indices.url, [row("Ä", 1)], index="Ä", missing_index="server")


def test_a_row_with_an_error_of_an_unknown_type_is_rejected_and_a_whole_request_fails_the_task(
    indices: Indices, elasticsearch_proxy: LogProxy
) -> None:
    index, proxy = indices.new("unknown"), elasticsearch_proxy
    proxy.rule = errors_of("new_exception")
    alone = [row(index, 1)]
    assert write(proxy.url, alone, index=index) == [("new_exception: by the test", alone[0])]
    many = [row(index, number) for number in range(30)]
    with pytest.raises(ConnectorError, match="refused: new_exception: by the test") as found:
        write(proxy.url, many, index=index)
    assert not isinstance(found.value, Unreachable)

    def all_but_one(asked: Asked) -> Said:
        said = asked.forward()
        for item in range(1, 30 if asked.is_bulk else 0):
            said = changed(said, item, 400, "new_exception")
        return said

    proxy.rule = all_but_one
    assert len(write(proxy.url, many, index=index)) == 29
    indices.ask("PUT", f"/{index}/_mapping", {"properties": {"n": {"type": "long"}}})
    wrong = [row(index, f"x{number}") for number in range(30)]  # of a known type: however many they are
    assert len(write(indices.url, wrong, index=index)) == 30


@pytest.mark.parametrize(
    ("action", "status", "kind"),
    [
        ("delete", 404, "shard_not_found_exception"),
        ("index", 404, "illegal_index_shard_state_exception"),
        ("index", 400, "validation_exception"),
    ],
)
def test_a_row_for_which_a_shard_is_away_is_sent_again(
    indices: Indices, elasticsearch_proxy: LogProxy, action: str, status: int, kind: str
) -> None:
    index, proxy = indices.new("moves"), elasticsearch_proxy

    def once(asked: Asked) -> Said:
        said = asked.forward()
        return changed(said, 0, status, kind) if len(proxy.bulks) == 1 else said

    proxy.rule = once
    one = f'{{"{action}":{{"_index":"{index}","_id":"1"}}}}\n' + ("" if action == "delete" else '{"n":1}\n')
    assert write(proxy.url, [one.encode()], index=index) == []
    assert len(proxy.bulks) == 2


def test_a_conflict_that_is_none_of_versions_is_no_success(
    indices: Indices, elasticsearch_proxy: LogProxy
) -> None:
    index = indices.new("conflict")
    elasticsearch_proxy.rule = errors_of("new_conflict_exception", 409)
    assert len(write(elasticsearch_proxy.url, [row(index, 1)], index=index)) == 1


def test_a_job_with_a_limit_for_bad_rows_fails_when_its_index_is_closed_meanwhile(
    indices: Indices, spark: SparkSession, tmp_path: Path, elasticsearch_proxy: LogProxy
) -> None:
    index = indices.new("job")

    def close(asked: Asked) -> Said:
        if asked.is_bulk:
            indices.ask("POST", f"/{index}/_close")
        return asked.forward()

    elasticsearch_proxy.rule = close
    script = "SET job.error.limit.percent = 100; SET job.quarantine = bad;\n"
    script += "CREATE TABLE bad USING json OPTIONS (path 'bad');\n"
    script += Indices(elasticsearch_proxy.url, "").table("dst", index, "id BIGINT", retry_timeout=0.5)
    with pytest.raises(SqlError, match="index_closed_exception") as found:
        execute(
            spark, plan_of(f"{script}INSERT INTO dst SELECT id FROM range(100);", tmp_path), lambda _: None
        )
    assert isinstance(found.value.__cause__, Unreachable)
    assert not (tmp_path / "bad").exists()
