import os
import stat
from pathlib import Path

import pytest

from queues.private_directories import UnsafeDirectory, private_directory, write_private
from tests.another_user import STRANGER


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def loose_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("loose_umask")
def test_created_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    made = private_directory(tmp_path / "a" / "b")
    write_private(made / "file", "text")
    assert [mode(path) for path in (tmp_path / "a", made, made / "file")] == [0o700, 0o700, 0o600]


def test_an_own_directory_that_others_can_only_read_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(0o755)
    assert mode(private_directory(path)) == 0o700
    path.chmod(0o751)
    assert mode(private_directory(path, make=False)) == 0o700


@pytest.mark.parametrize("open_to", [0o777, 0o1777, 0o770, 0o703])
def test_an_own_directory_that_others_can_write_is_refused_with_what_to_do(
    tmp_path: Path, open_to: int
) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(open_to)
    with pytest.raises(UnsafeDirectory, match=rf"{path} .*may have done so.*`chmod 700 {path}`"):
        private_directory(path)
    assert mode(path) == open_to, "its content has to be checked first"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("its_mode", [0o700, 0o777])
def test_the_directory_of_another_user_is_refused_for_root_too(tmp_path: Path, its_mode: int) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(its_mode)
    os.chown(path, STRANGER, STRANGER)
    for make in (True, False):
        with pytest.raises(UnsafeDirectory, match=f"belongs to user {STRANGER}"):
            private_directory(path, make=make)
        with pytest.raises(UnsafeDirectory, match=f"{path}, above it, belongs to user {STRANGER}"):
            private_directory(path / "below", make=make)


def test_a_symbolic_link_is_refused_and_one_above_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir(mode=0o700)
    link.symlink_to(real)
    with pytest.raises(UnsafeDirectory, match="symbolic link"):
        private_directory(link)
    assert private_directory(link / "state").is_dir()
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    with pytest.raises(UnsafeDirectory, match="symbolic link"):
        private_directory(tmp_path / "dangling")


def test_below_what_all_can_write_a_directory_could_be_replaced_unless_it_is_sticky(tmp_path: Path) -> None:
    above, link = tmp_path / "above", tmp_path / "link"
    above.mkdir()
    link.symlink_to(above)
    above.chmod(0o777)
    for path in (above / "state", above / "more" / "state", link / "state"):
        with pytest.raises(UnsafeDirectory, match="can be written by all users"):
            private_directory(path)
    above.chmod(0o1777)
    assert mode(private_directory(above / "state")) == 0o700


def test_a_link_in_a_directory_that_all_can_write_is_not_followed(tmp_path: Path) -> None:
    real, above = tmp_path / "real", tmp_path / "above"
    real.mkdir(mode=0o700)
    above.mkdir()
    (above / "link").symlink_to(real)
    above.chmod(0o777)
    with pytest.raises(UnsafeDirectory, match="can be written by all users"):
        private_directory(above / "link" / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_group_that_can_write_above_is_trusted_only_when_it_is_this_users(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o775)
    assert private_directory(above / "state").is_dir()
    os.chown(above, -1, STRANGER)
    with pytest.raises(UnsafeDirectory, match=f"can be written by group {STRANGER}"):
        private_directory(above / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_a_link_of_another_user_is_not_followed_at_any_level_of_the_path(tmp_path: Path) -> None:
    real, sticky = tmp_path / "real", tmp_path / "sticky"
    real.mkdir(mode=0o700)
    sticky.mkdir()
    (sticky / "theirs").symlink_to(real)
    (tmp_path / "ours").symlink_to("sticky/theirs")
    (sticky / "fine").symlink_to("../real/..")
    os.chown(sticky / "theirs", STRANGER, STRANGER, follow_symlinks=False)
    sticky.chmod(0o1777)
    assert private_directory(sticky / "fine" / "real" / "state").is_dir()
    for path in (sticky / "theirs", tmp_path / "ours"):
        with pytest.raises(
            UnsafeDirectory, match=f"/theirs, above it, is a symbolic link of user {STRANGER}"
        ):
            private_directory(path / "state")
        with pytest.raises(UnsafeDirectory):
            private_directory(path / "state", make=False)
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        private_directory(tmp_path / "round" / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_that_another_user_makes_above_in_this_moment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def slower(path: Path, mode: int = 0o777) -> None:
        if path.name == "above":
            mkdir(path)
            path.chmod(0o777)
            os.chown(path, STRANGER, STRANGER)
        mkdir(path, mode)

    tmp_path.chmod(0o1777)
    monkeypatch.setattr(Path, "mkdir", slower)
    with pytest.raises(UnsafeDirectory, match=f"/above, above it, belongs to user {STRANGER}"):
        private_directory(tmp_path / "above" / "state")


def test_a_private_file_that_others_could_read_is_closed_before_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("of an earlier version")
    file.chmod(0o664)
    write_private(file, "secret")
    assert (mode(file), file.read_text()) == (0o600, "secret")


def test_without_make_nothing_is_made(tmp_path: Path) -> None:
    private_directory(tmp_path / "a" / "b", make=False)
    assert not (tmp_path / "a").exists()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotADirectoryError):
            private_directory(path)


def test_a_private_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        write_private(tmp_path / "link", "text")
    assert not (tmp_path / "target").exists()
