"""A file that is replaced as a whole, whoever does so."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spark_runner.runners.private_file import replace_file


def test_threads_that_replace_a_file_at_once_leave_one_whole_file_and_no_draft(tmp_path: Path) -> None:
    path, content = tmp_path / "folder" / "file", b"x" * 200_000
    with ThreadPoolExecutor(8) as at_once:
        list(at_once.map(lambda _: replace_file(path, content), range(400)))
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
