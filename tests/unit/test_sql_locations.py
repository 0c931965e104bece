from pathlib import Path

import pytest

from spark_runner.sql.locations import comparable, contains, overlap, resolve


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("data/x", "/base/data/x"),
        ("./data/../x/", "/base/x"),
        ("../x", "/x"),
        ("/abs/x", "/abs/x"),
        ("s3a://bucket/x/../y", "s3a://bucket/x/../y"),
        ("file:/tmp/x", "file:/tmp/x"),
        ("a b/ü*.csv", "/base/a b/ü*.csv"),
    ],
)
def test_paths_are_relative_to_the_script(path: str, expected: str) -> None:
    assert resolve(path, "/base") == expected


@pytest.mark.parametrize("path", ["avro:out", "file:x", "s3a:bucket/x"])
def test_a_scheme_without_a_slash_behind_it_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"neither a path nor a URL such as s3a://bucket/folder"):
        resolve(path, "/base")


def test_the_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert resolve("~/x", "/base") == "/home/ada/x"


def test_a_relative_base_is_relative_to_where_the_job_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("x", "examples") == f"{tmp_path}/examples/x"


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a/b", "/a", False),
        ("/a", "/ab", False),
        ("/", "/a", True),
        ("/a", "file:///a/b", True),
        ("file:/a", "/a", True),
        ("s3a://x/a", "s3a://x/a/b/", True),
        ("s3a://x/a/b/..", "s3a://x/a", True),
        ("s3a://x/a", "s3a://x/ab", False),
        ("s3a://x/a", "s3a://y/a", False),
        ("/a", "s3a://x/a", False),
    ],
)
def test_contains(outer: str, inner: str, expected: bool) -> None:
    outer, inner = comparable(outer), comparable(inner)
    assert contains(outer, inner) is expected
    assert overlap(inner, outer) is (expected or contains(inner, outer))


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    link, target = tmp_path / "link", tmp_path / "real" / "x"
    assert contains(comparable(str(link)), comparable(str(target)))


@pytest.mark.parametrize(
    ("read", "is_shared"),
    [
        ("visits-total", True),
        ("visits-a,visits-total", True),
        ("visits-a,visits-b", False),
        ("visits", False),
        ("?^visits-.*$", True),
        ("?^visits$", False),
        ("?visits", True),
        (r"?^visits\.total$", False),
        ("?^(visits-total)$", False),  # not known without a search that may take long
        ("?" + "a*" * 100 + "b", False),
    ],
)
def test_a_topic_overlaps_with_lists_and_patterns_that_have_it(read: str, is_shared: bool) -> None:
    written = comparable("kafka://h:1/visits-total")
    assert overlap(written, comparable(f"kafka://h:1/{read}")) is is_shared
    assert overlap(comparable(f"kafka://h:1/{read}"), written) is is_shared
    assert not overlap(written, comparable(f"kafka://h:2/{read}"))
