import pytest

from spark_runner.runners.spark_settings import render_properties


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain-1.0/x", "plain-1.0/x"),
        ("a=b:c#d!e f", r"a\=b\:c\#d\!e\ f"),
        ("C:\\dir\\", r"C\:\\dir\\"),
        ("one\ntwo\r\tx\f", r"one\ntwo\r\tx\f"),
        ("žluť", r"\u017elu\u0165"),
        ("😀", r"\ud83d\ude00"),
        ("\x00\x7f", r"\u0000\u007f"),
        ("", ""),
    ],
)
def test_values_are_written_as_java_reads_them(value: str, written: str) -> None:
    assert render_properties({"spark.x": value}) == f"spark.x={written}\n"


def test_a_key_cannot_break_out_of_its_line() -> None:
    assert render_properties({"a=b\nc": "d"}) == "a\\=b\\nc=d\n"
