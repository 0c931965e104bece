"""Searches log records in Elasticsearch."""

from collections.abc import Iterator
from typing import Any

from orchestrator.logs.errors import TargetRefuses
from orchestrator.logs.reading.origin import Origin
from orchestrator.logs.reading.query import LogQuery, LogRecord, levels_from
from orchestrator.logs.shipping.http import Answer, Http, as_json

_PAGE = 5_000  # records, some megabytes
_KEEP = "1m"  # how long the server keeps the point in time between two pages
_NOT_FOUND = 404
_READING = "logs cannot be read"
_MAX_RESULT = 10_000  # default of `index.max_result_window`
_NOTICES = 100  # records of Spark on stderr that a `spark_level` may reject only here


class LogSearch:
    """Reads the records of an alias in order; raises TargetUnreachable, TargetRefuses."""

    def __init__(self, http: Http, alias: str) -> None:
        self._http, self._alias = http, alias

    def entries(self, query: LogQuery) -> Iterator[LogRecord]:
        """All matching records as of now, oldest first, page by page."""
        opened = self._http.request("POST", f"/{self._alias}/_pit?keep_alive={_KEEP}&ignore_unavailable=true")
        if opened.status == _NOT_FOUND:  # no index exists yet
            return
        point = {"id": str(opened.document(_READING).get("id")), "keep_alive": _KEEP}
        try:
            after: list[Any] | None = None
            while True:
                search = {
                    "size": _PAGE,
                    "pit": point,
                    "query": _filters(query),
                    "sort": _sort("asc"),
                    "track_total_hits": False,
                    **({} if after is None else {"search_after": after}),
                }
                hits = _hits(self._http.request("POST", "/_search", as_json(search)))
                yield from filter(query.matches_here, map(_entry, hits))
                if len(hits) < _PAGE:
                    return
                after = hits[-1]["sort"]
        finally:
            self._http.request("DELETE", "/_pit", as_json({"id": point["id"]}))

    def last(self, query: LogQuery, count: int) -> list[LogRecord]:
        """The last `count` matching records, oldest first; with `grep` or origins, of the last 10,000."""
        size = _MAX_RESULT if query.needs_more else min(count + _NOTICES, _MAX_RESULT)
        search = {"size": size, "query": _filters(query), "sort": _sort("desc"), "track_total_hits": False}
        found = self._http.request("POST", f"/{self._alias}/_search?ignore_unavailable=true", as_json(search))
        hits = [] if found.status == _NOT_FOUND else _hits(found)
        return list(reversed([entry for entry in map(_entry, hits) if query.matches_here(entry)][:count]))


# Spark writes to stderr, too, and in a pod to the one stream that there is.
_STREAMS = {Origin.OUT: ("stdout",), Origin.ERR: ("stderr",), Origin.SPARK: ("spark", "stderr", "stdout")}


def _filters(query: LogQuery) -> dict[str, Any]:
    filters: list[dict[str, Any]] = [{"terms": {name: list(values)}} for name, values in query.terms.items()]
    if query.level:
        filters.append({"terms": {"log.level": list(levels_from(query.level))}})
    if query.origins:
        streams = {stream for origin in query.origins for stream in _STREAMS.get(origin, ())}
        filters.append({"terms": {"log.stream": sorted(streams)}})
    if query.spark_level:
        levels = {"terms": {"log.level": list(levels_from(query.spark_level))}}
        others = {"bool": {"must_not": {"term": {"log.stream": "spark"}}}}
        filters.append({"bool": {"should": [levels, others], "minimum_should_match": 1}})
    if query.since:
        filters.append({"range": {"@timestamp": {"gte": f"{query.since}Z"}}})
    return {"bool": {"filter": filters}}


def _sort(order: str) -> list[dict[str, Any]]:
    return [
        {
            "@timestamp": {
                "order": order,
                "format": "strict_date_optional_time_nanos",
                "unmapped_type": "date_nanos",
            }
        },
        {"event.sequence": {"order": order, "missing": 0, "unmapped_type": "long"}},
    ]


def _hits(answer: Answer) -> list[dict[str, Any]]:
    document = answer.document(_READING)
    try:
        return [_checked(hit) for hit in document["hits"]["hits"]]
    except (KeyError, TypeError, ValueError) as error:
        raise TargetRefuses(f"{_READING}: the response is not one of Elasticsearch") from error


def _checked(hit: Any) -> dict[str, Any]:
    return {"_id": hit["_id"], "_source": dict(hit["_source"]), "sort": hit.get("sort")}


def _entry(hit: dict[str, Any]) -> LogRecord:
    return LogRecord(str(hit["_id"]), dict(hit["_source"]))
