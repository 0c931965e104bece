"""What a write by the push engine refuses before it begins."""

from types import SimpleNamespace
from typing import Any

import pytest

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.pushed_rows import pushed_by
from spark_runner.push.control.client import Endpoint
from spark_runner.push.settings import Order
from spark_runner.push.task import PushTask
from tests.push_support import settings


@pytest.mark.parametrize("value", ["true", "True", " TRUE "])
def test_rows_in_order_are_not_written_by_speculative_tasks(value: str) -> None:
    rows: Any = SimpleNamespace(sparkSession=SimpleNamespace(conf={"spark.speculation": value}))
    request = WriteRequest("append", Writer("run"))
    options = {"concurrency": 1, "rate_limit": 0, "buffer_records": 1, "buffer_bytes": 1}
    with pytest.raises(ConnectorError, match=r"set spark\.speculation to false"):
        pushed_by(rows, lambda _: iter, settings(order=Order.STRICT), options, request)


def test_a_text_of_a_task_does_not_have_its_token() -> None:
    task = PushTask(settings(), Endpoint("127.0.0.1", 1, "its-token", 30.0))
    assert "its-token" not in f"{task} {task!r}"
