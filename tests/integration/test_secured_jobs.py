"""Jobs on a ZooKeeper that requires certificates and logins: only worker and driver have access."""

from pathlib import Path

import pytest

from orchestrator.compose import open_session
from orchestrator.config.settings import Settings
from orchestrator.config.zookeeper import DriverAccess, LoginFile, TlsFiles
from orchestrator.model.states import Status
from queues.model.errors import AccessDenied
from queues.session import Acl
from tests.jobs_support import Office
from tests.servers.secured import ADA, SECRET, Secured


@pytest.fixture
def settings(secured: Secured, tmp_path: Path) -> Settings:
    password, tls, of_drivers = (
        tmp_path / "password",
        secured.certificates.tls,
        secured.certificates.driver_tls,
    )
    password.write_text(f"{SECRET}\n", "utf-8")
    return Settings(
        zookeeper_hosts=f"{secured.hosts()}/{tmp_path.name}",
        zookeeper_tls=TlsFiles(
            ca_file=Path(tls.ca_file),
            certificate_file=Path(tls.certificate_file),
            key_file=Path(tls.key_file),
        ),
        zookeeper_login=LoginFile(user=ADA.user, password_file=password),
        zookeeper_acl=Acl.CREATOR,
        zookeeper_drivers=DriverAccess(
            certificate_file=Path(of_drivers.certificate_file), key_file=Path(of_drivers.key_file)
        ),
        state_dir=tmp_path / "state",
        session_timeout=4.0,
        kill_grace=2.0,
    )


def test_a_job_succeeds_and_no_secret_is_stored_anywhere(
    settings: Settings, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    office = Office(settings)
    try:
        office.worker()
        detail = office.wait(office.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')"))
    finally:
        office.close()
    assert detail.job.status is Status.SUCCESS, detail.job.error
    assert (tmp_path / "ran").read_text() == "x"
    written = [path for path in settings.state_dir.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


def test_nodes_that_the_login_created_are_closed_to_others(
    settings: Settings, secured: Secured, tmp_path: Path
) -> None:
    with open_session(settings, settings.zookeeper_hosts) as session:
        session.ensure_path("/orchestrator")
    stranger = Settings(zookeeper_hosts=f"{secured.plain}/{tmp_path.name}", state_dir=tmp_path / "other")
    with (
        pytest.raises(AccessDenied, match="has no right to do this"),
        open_session(stranger, stranger.zookeeper_hosts) as session,
    ):
        session.get("/orchestrator")
