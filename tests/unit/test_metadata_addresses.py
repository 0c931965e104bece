"""The addresses at which clouds serve the credentials of a machine, in any notation."""

import pytest

from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.protocol.metadata_addresses import is_loopback, is_metadata
from spark_runner.runners import http_json
from spark_runner.runners.http_json import ClusterHttp
from tests.hostile_server import stranger


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd00:42::42",
        "100.100.100.200",
        "168.63.129.16",
    ],
)
def test_metadata_is_known_in_each_form(address: str) -> None:
    assert is_metadata(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "8.8.8.8", "::1", "2001:db8::1"])
def test_other_addresses_are_none(address: str) -> None:
    assert not is_metadata(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])  # noqa: S104 - nothing listens
def test_this_host_is_known_in_each_form(address: str) -> None:
    assert is_loopback(address)


def test_a_cluster_s_page_at_such_an_address_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # No test can bind the real address: that of the server counts as one here.
    monkeypatch.setattr(http_json, "is_metadata", lambda address: address == "127.0.0.1")
    with stranger() as there:
        for url in (there.url, there.url.replace("127.0.0.1", "localhost")):
            with pytest.raises(BackendUnreachable, match="metadata service: no request is sent"):
                ClusterHttp().get(f"{url}/latest/meta-data/")
    assert there.seen == []
