import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_runner.runners.class_archive.store import MAX_ARCHIVES, ArchiveStore

BYTES = 2 << 20


@pytest.fixture
def store(tmp_path: Path) -> ArchiveStore:
    store = ArchiveStore(tmp_path / "archives")
    with store.locked():  # makes the directory
        return store


def publish(store: ArchiveStore, key: str, content: bytes = b"x" * BYTES, spark: str = "") -> Path:
    made = store.directory / f"{key}.draft"
    made.write_bytes(content)
    store.publish(key, made, spark)
    found = store.find(key)
    assert found is not None
    return found


def anew(store: ArchiveStore) -> ArchiveStore:
    """The store of another process, which has checked nothing yet."""
    return ArchiveStore(store.directory)


def test_a_published_archive_is_found(store: ArchiveStore) -> None:
    path = publish(store, "a")
    assert path.read_bytes() == b"x" * BYTES
    assert anew(store).find("a") == path
    assert store.find("b") is None
    assert ArchiveStore(store.directory / "nowhere").find("a") is None


@pytest.mark.parametrize("seen", [True, False])
def test_a_truncated_archive_is_not_trusted(store: ArchiveStore, *, seen: bool) -> None:
    path = publish(store, "a")
    path.chmod(0o600)
    os.truncate(path, BYTES - 1)
    assert (store if seen else anew(store)).find("a") is None


@pytest.mark.parametrize("seen", [True, False])
def test_an_archive_with_other_bytes_is_not_trusted(store: ArchiveStore, *, seen: bool) -> None:
    path = publish(store, "a")
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(BYTES // 2)
        file.write(b"?")
    assert (store if seen else anew(store)).find("a") is None


@pytest.mark.parametrize("note", [b"", b"[]", b"{}", b'{"bytes": "many", "crc32": null}', b"\xff"])
def test_an_archive_whose_sum_cannot_be_read_is_not_trusted(store: ArchiveStore, note: bytes) -> None:
    publish(store, "a")
    (store.directory / "a.json").write_bytes(note)
    assert anew(store).find("a") is None


def test_an_archive_without_its_sum_is_not_there_yet(store: ArchiveStore) -> None:
    publish(store, "a")
    (store.directory / "a.json").unlink()
    assert store.find("a") is None
    assert anew(store).find("a") is None


def test_an_archive_that_others_may_have_written_is_not_trusted(store: ArchiveStore) -> None:
    path = publish(store, "a")
    path.chmod(0o620)
    assert store.find("a") is None
    path.chmod(0o400)
    assert store.find("a") is not None
    store.directory.chmod(0o777)
    assert store.find("a") is None


def test_a_link_is_no_archive(store: ArchiveStore) -> None:
    path = publish(store, "a")
    path.rename(store.directory / "elsewhere")
    path.symlink_to(store.directory / "elsewhere")
    assert anew(store).find("a") is None


def test_a_scrap_is_not_published(store: ArchiveStore) -> None:
    scrap = store.directory / "scrap"
    scrap.write_bytes(b"x")
    with pytest.raises(ValueError, match="1 bytes"):
        store.publish("a", scrap)
    assert store.find("a") is None


def test_a_removed_archive_is_gone(store: ArchiveStore) -> None:
    publish(store, "a")
    store.remove("a")
    store.remove("a")
    assert store.find("a") is None
    assert not list(store.directory.glob("a*"))


def test_those_that_were_used_last_stay_and_left_overs_go(store: ArchiveStore) -> None:
    for number in range(MAX_ARCHIVES + 2):
        publish(store, f"k{number}")
        os.utime(store.directory / f"k{number}.json", (number, number))
    assert store.find("k0") is not None  # used just now
    for name in ("k9.jsa", "k1.json.123", "x.draft"):
        (store.directory / name).write_bytes(b"x")
    (store.making / "runs").mkdir(parents=True)
    store.tidy()
    kept = {f"k{number}" for number in (0, *range(3, MAX_ARCHIVES + 2))}
    assert {path.name for path in store.directory.iterdir()} == {
        "lock",
        *(f"{key}.{kind}" for key in kept for kind in ("jsa", "json")),
    }


def test_each_spark_keeps_its_archives_until_it_is_gone(store: ArchiveStore, tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("old", "new")]
    for home in homes:
        home.mkdir()
        for number in range(MAX_ARCHIVES + 1):
            publish(store, f"{home.name}{number}", spark=str(home))
            os.utime(store.directory / f"{home.name}{number}.json", (number, number))
    store.tidy()
    kept = {f"{home.name}{number}" for home in homes for number in range(1, MAX_ARCHIVES + 1)}
    assert {note.stem for note in store.directory.glob("*.json")} == kept
    homes[0].rmdir()
    store.tidy()
    kept = {f"new{number}" for number in range(1, MAX_ARCHIVES + 1)}
    assert {path.stem for path in store.directory.glob("*.js*")} == kept


def test_one_process_at_a_time_makes_archives(store: ArchiveStore) -> None:
    look = (
        "import json, sys; from pathlib import Path\n"
        "from spark_runner.runners.class_archive.store import ArchiveStore\n"
        "with ArchiveStore(Path(sys.argv[1])).locked() as mine: print(json.dumps(mine))"
    )

    def other() -> bool:
        command = [sys.executable, "-c", look, str(store.directory)]
        done = subprocess.run(command, check=True, capture_output=True)
        return bool(json.loads(done.stdout))

    with store.locked() as mine:
        assert mine
        assert not other()
    assert other()
