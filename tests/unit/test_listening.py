"""The addresses at which metrics may be served."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.config.listening import Listening
from orchestrator.config.settings import Settings, load_settings
from orchestrator.model.errors import SettingsError

FILES = {"token_file": Path("/t"), "certificate_file": Path("/c")}


def test_nothing_listens_by_default() -> None:
    assert Settings().metrics.address == ""


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("9187", "127.0.0.1", 9187),
        (9187, "127.0.0.1", 9187),
        ("127.0.0.7:1", "127.0.0.7", 1),
        ("localhost:0", "localhost", 0),
        ("[::1]:9187", "::1", 9187),
    ],
)
def test_loopback_needs_no_token(address: object, host: str, port: int) -> None:
    listening = Listening.model_validate({"address": address})
    assert (listening.host, listening.port) == (host, port)


@pytest.mark.parametrize("address", ["0.0.0.0:9187", "[::]:9187", "worker-1:9187", "10.0.0.1:9187"])
def test_beyond_loopback_a_token_and_tls_are_demanded(address: str) -> None:
    for given in ({}, {"token_file": "/t"}, {"certificate_file": "/c"}):
        with pytest.raises(ValidationError, match=r"other hosts can reach .*: set token_file and cert"):
            Listening.model_validate({"address": address, **given})
    assert Listening.model_validate({"address": address, **FILES}).port == 9187


@pytest.mark.parametrize(
    "address",
    [":9187", "host:", "9187x", "1:70000", "70000", "a b:1", "::1", "-1", "h:\u0661", "\n:1", True],
)
def test_an_invalid_address_is_refused(address: object) -> None:
    with pytest.raises(ValidationError):
        Listening.model_validate({"address": address, **FILES})


def test_a_key_without_a_certificate_is_refused() -> None:
    with pytest.raises(ValidationError, match="key_file needs certificate_file"):
        Listening.model_validate({"address": "1", "key_file": "/k"})


def test_the_flag_goes_before_the_file_and_keeps_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[metrics]\naddress = 1000\ntoken_file = "/token"\n', "utf-8")
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(file))
    assert load_settings().metrics.port == 1000
    settings = load_settings(metrics={"address": "2000"})
    assert (settings.metrics.port, settings.metrics.token_file) == (2000, Path("/token"))
    monkeypatch.setenv("ORCHESTRATOR_METRICS__ADDRESS", "3000")
    assert load_settings().metrics.port == 3000
    with pytest.raises(SettingsError, match="other hosts can reach"):
        load_settings(metrics={"address": "0.0.0.0:1"})
