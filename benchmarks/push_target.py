"""A target for pushes, in a process of its own: an HTTP server whose latency, errors and limits can be set.

It reads batches as JSON arrays of objects with `key`, `number` and `id`, and keeps which ones it took: the
first deliveries of a key must have growing numbers, and a record that comes again the same id.

    POST /push/LANE    a batch
    POST /set          {"latency": seconds, "lanes": {LANE: seconds}, "limit": requests in flight that it
                        takes, "rate": requests per second that it takes, "errors": share, "timeouts": share}
    GET  /seen         {"taken": records, "distinct": records, "out_of_order": records,
                        "other_ids": records, "requests": requests, "most": requests in flight,
                        "lanes": {LANE: records}}
    POST /reset
"""

import asyncio
import json
import random
import sys
from collections import Counter
from typing import Any, cast

_TIMEOUT_S = 60.0  # a request that times out for its client has no answer before
_OF_POISON = 400


class Target:
    """What the server took, and how it answers."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.reset()
        self.set({})

    def reset(self) -> None:
        """Forget what was taken."""
        self.ids = dict[tuple[str, int], str]()
        self.last = dict[str, int]()
        self.out_of_order = self.other_ids = self.taken = self.requests = self.most = 0
        self.lanes = Counter[str]()

    def set(self, settings: dict[str, Any]) -> None:
        """Further settings; those that are not named stay."""
        self.settings = {
            "latency": 0.0,
            "lanes": {},
            "limit": 0,
            "rate": 0.0,
            "errors": 0.0,
            "timeouts": 0.0,
            **self.settings,
            **settings,
        }
        self.tokens, self.filled = 1.0, asyncio.get_running_loop().time()

    def is_over_rate(self, now: float) -> bool:
        """Whether a request comes too early."""
        rate = self.settings["rate"]
        if not rate:
            return False
        self.tokens = min(max(1.0, rate * 0.1), self.tokens + (now - self.filled) * rate)
        self.filled = now
        if self.tokens < 1:
            return True
        self.tokens -= 1
        return False

    def take(self, lane: str, records: list[dict[str, Any]]) -> int:
        """Take a batch; returns the status."""
        if any(record.get("poison") for record in records):
            return _OF_POISON
        for record in records:
            place, number = (record["key"], record["number"]), record["number"]
            known = self.ids.setdefault(place, record["id"])
            self.other_ids += known != record["id"]
            if number > self.last.get(record["key"], -1):
                self.last[record["key"]] = number
            elif known is record["id"]:  # seen for the first time
                self.out_of_order += 1
        self.taken += len(records)
        self.lanes[lane] += len(records)
        return 200

    def seen(self) -> dict[str, Any]:
        """What was taken."""
        return {
            "taken": self.taken,
            "distinct": len(self.ids),
            "out_of_order": self.out_of_order,
            "other_ids": self.other_ids,
            "requests": self.requests,
            "most": self.most,
            "lanes": dict(self.lanes),
        }


class Connection(asyncio.Protocol):
    """One connection; a client sends one request at a time on it."""

    in_flight = 0

    def __init__(self, target: Target) -> None:
        self._target, self._data = target, bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """A part of a request is there, or a whole one."""
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._data[:end]).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        size = int(headers.get("content-length", 0))
        if len(self._data) < end + 4 + size:
            return
        body = bytes(self._data[end + 4 : end + 4 + size])
        del self._data[: end + 4 + size]
        _, path, _ = head[0].split(" ", 2)
        self._request(path, body)

    def _request(self, path: str, body: bytes) -> None:
        target, settings = self._target, self._target.settings
        loop = asyncio.get_running_loop()
        if path == "/seen":
            return self._answer(200, json.dumps(target.seen()).encode())
        if path == "/set":
            target.set(json.loads(body))
            return self._answer(200)
        if path == "/reset":
            target.reset()
            return self._answer(200)
        lane = path.rpartition("/")[2]
        target.requests += 1
        is_full = settings["limit"] and Connection.in_flight >= settings["limit"]
        if is_full or target.is_over_rate(loop.time()):
            return self._answer(429)
        Connection.in_flight += 1
        target.most = max(target.most, Connection.in_flight)
        began, latency = loop.time(), settings["lanes"].get(lane, settings["latency"])
        draw = random.random()  # noqa: S311 - of errors
        is_error = settings["timeouts"] <= draw < settings["timeouts"] + settings["errors"]
        status = 500 if is_error else target.take(lane, json.loads(body))
        if draw < settings["timeouts"]:
            Connection.in_flight -= 1
            loop.call_later(_TIMEOUT_S, self._transport.abort)  # what it took has no answer
        else:
            loop.call_at(began + latency, self._end, status)
        return None

    def _end(self, status: int) -> None:
        Connection.in_flight -= 1
        self._answer(status)

    def _answer(self, status: int, body: bytes = b"{}") -> None:
        head = f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
        self._transport.write(head.encode() + body)


async def main() -> None:
    """Serve on loopback until stdin ends; prints the port."""
    target, loop = Target(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(target), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
