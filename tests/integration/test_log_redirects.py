"""Keys of log servers are sent only to the servers in the settings, never to the target of a redirect."""

from pathlib import Path

import pytest

from orchestrator.logs.shipping.http import Http
from tests.hostile_server import stranger

KEY = "user:s3cret-of-the-worker"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_of_a_log_server_takes_no_key_elsewhere(tmp_path: Path, status: int, method: str) -> None:
    key = tmp_path / "key"
    key.write_text(KEY)
    with stranger() as elsewhere, stranger() as named:
        named.status, named.headers = status, {"Location": f"{elsewhere.url}/x"}
        http = Http([named.url], key_file=key)
        try:
            answer = http.request(method, "/_bulk", b"{}" if method == "POST" else None)
        finally:
            http.close()
    assert answer.status == status
    assert "Authorization: Basic" in named.seen[0].title() or "authorization: Basic" in named.seen[0]
    assert elsewhere.seen == []
