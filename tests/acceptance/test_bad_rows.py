"""Rows that do not fit, as a user meets them."""

import pytest

from tests.acceptance.support import Shell

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SCRIPT = """\
SET job.error.limit.rows = {limit};
CREATE TABLE people (id INT, age INT) USING csv OPTIONS (path 'people.csv');
CREATE TABLE adults (id INT, age INT, CONSTRAINT adult EXPECT (age >= 18) ON VIOLATION DROP ROW)
USING parquet OPTIONS (path 'adults');
INSERT OVERWRITE adults SELECT * FROM people;
"""
PEOPLE = "id,age\n1,30\n2,x\n3,5\n"


def test_a_run_shows_their_number_and_their_place(shell: Shell) -> None:
    shell.write("people.csv", PEOPLE)
    shell.write("s.sql", SCRIPT.format(limit=1))
    ran = shell.type_anew("run", "s.sql")
    assert ran.code == 0, ran.stderr
    table = [line.split() for line in ran.stdout.splitlines()]
    assert ["people", "3", "1", "0"] in [row[:4] for row in table]
    assert ["adults", "(line", "5)", "2", "0", "1"] in table
    shell.write("s.sql", SCRIPT.format(limit=0))
    failed = shell.type_anew("run", "s.sql")
    assert failed.code == 1
    assert "1 rows do not fit, and job.error.limit.rows is 0; they are in file:" in failed.stderr
