"""Checks the expressions of rules and dashboards with a parser of PromQL, without a Prometheus."""

from dataclasses import dataclass
from typing import Any

import promql_parser as promql

_BY_PROMETHEUS = {"instance", "job"}  # the scrape adds these
_OF_COUNTERS = {"rate", "irate", "increase"}
_BY_GRAFANA = {"$__rate_interval": "5m"}


@dataclass(frozen=True)
class Served:
    """By sample name: the values of each label."""

    samples: dict[str, dict[str, set[str]]]

    def labels(self, name: str) -> set[str]:
        return self.samples[name].keys() | _BY_PROMETHEUS


def labels_asked(expression: str, served: Served) -> set[str]:
    """The labels of the result; fails for invalid PromQL, and for samples that are not served."""
    for word, stands_for in _BY_GRAFANA.items():
        expression = expression.replace(word, stands_for)
    return _labels(promql.parse(expression), served)


def _labels(expr: Any, served: Served) -> set[str]:
    match expr:
        case promql.VectorSelector():
            found = _of_selector(expr, served)
        case promql.MatrixSelector():
            found = _of_selector(expr.vector_selector, served)
        case promql.ParenExpr() | promql.UnaryExpr():
            found = _labels(expr.expr, served)
        case promql.AggregateExpr():
            inner, found = _labels(expr.expr, served), set[str]()
            if expr.modifier is not None:
                assert expr.modifier.type == promql.AggModifierType.By
                found = {*expr.modifier.labels}
            assert found <= inner, f"{found} of {inner}"
        case promql.BinaryExpr():
            found, *others = [_labels(side, served) for side in (expr.lhs, expr.rhs) if not _is_number(side)]
            assert all(each == found for each in others), f"the operands have different labels: {expr}"
        case promql.Call():
            found = _of_call(expr, served)
        case _:
            raise AssertionError(f"{type(expr).__name__} is not expected here")
    return found


def _of_call(expr: Any, served: Served) -> set[str]:
    name, vectors = expr.func.name, [arg for arg in expr.args if not _is_number(arg)]
    for arg in vectors:
        if isinstance(arg, promql.MatrixSelector):
            is_counter = str(arg.vector_selector.name).endswith(("_total", "_count", "_sum", "_bucket"))
            assert is_counter == (name in _OF_COUNTERS), f"{name} of {arg}"
    found = set[str]().union(*(_labels(arg, served) for arg in vectors))
    if name == "histogram_quantile":
        assert "le" in found
        return found - {"le"}
    return found


def _of_selector(selector: Any, served: Served) -> set[str]:
    name = str(selector.name)
    assert name in served.samples, f"{name} is not served"
    for matcher in selector.matchers.matchers:
        assert matcher.name in served.labels(name), f"{name} has no label {matcher.name}"
        if matcher.name not in _BY_PROMETHEUS:
            for value in matcher.value.split("|"):
                assert value in served.samples[name][matcher.name], f"{matcher.name} is never {value}"
    return served.labels(name)


def _is_number(expr: Any) -> bool:
    match expr:
        case promql.NumberLiteral():
            return True
        case promql.ParenExpr():
            return _is_number(expr.expr)
        case promql.Call():
            return bool(expr.func.name == "vector" and _is_number(expr.args[0]))
        case _:
            return False
