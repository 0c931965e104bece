"""The parts of connector jdbc that need no database: URLs, options, names, logins."""

import base64
import re

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StringType, StructType, VariantType

from spark_runner.connectors.arrow_tasks import error_of_task
from spark_runner.connectors.errors import ConnectorError, OptionError, Unreachable
from spark_runner.connectors.jdbc.address import parse
from spark_runner.connectors.jdbc.failures import DatabaseBroke, DatabaseBusy, DatabaseFailed, failure
from spark_runner.connectors.jdbc.names import table_name
from spark_runner.connectors.jdbc.postgres import Postgres
from spark_runner.connectors.jdbc.scram import ScramClient, ScramError
from spark_runner.connectors.jdbc.wire import Login
from spark_runner.connectors.options import validate
from spark_runner.connectors.python_source import masked
from spark_runner.driver.outcome import is_permanent

URL = "jdbc:postgresql://Host:5433/shop?sslmode=require"


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        (URL, "jdbc:postgresql://host:5433/shop"),
        ("jdbc:mariadb://h/shop", "jdbc:mysql://h:3306/shop"),
        ("jdbc:mysql://h:3306/shop?x=y", "jdbc:mysql://h:3306/shop"),
        ("jdbc:postgresql://[::1]:7/a%20b", "jdbc:postgresql://::1:7/a b"),
        ("jdbc:postgresql://a,b/shop", "jdbc:postgresql://a,b/shop"),
        ("jdbc:oracle:thin:@h:1521/x?y", "jdbc:oracle:thin:@h:1521/x"),
    ],
)
def test_one_database_has_one_plain_url(url: str, plain: str) -> None:
    assert parse(url).plain == plain


def test_options_have_the_names_of_spark_and_of_streaming_engines() -> None:
    engines = {"table-name": "t", "scan.partition.column": "id", "scan.partition.num": "4"}
    engines |= {"scan.fetch-size": "7", "sink.buffer-flush.max-rows": "5", "scan.partition.lower-bound": "0"}
    engines |= {"scan.partition.upper-bound": "9"}
    older = {"table": "t", "read.partition.column": "id", "read.partition.num": "4", "read.fetch-size": "7"}
    older |= {
        "write.flush.max-rows": "5",
        "read.partition.lower-bound": "0",
        "read.partition.upper-bound": "9",
    }
    spark = {
        "dbtable": "t",
        "partitionColumn": "id",
        "numPartitions": "4",
        "fetchsize": "7",
        "batchsize": "5",
    }
    spark |= {"lowerBound": "0", "upperBound": "9"}
    found = [validate("jdbc", {"url": URL, **given}) for given in (engines, older, spark)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "one of the options 'table' and 'query'"),
        ({"table": "t", "query": "SELECT 1"}, "one of the options 'table' and 'query'"),
        ({"query": "DROP TABLE t"}, "must begin with SELECT"),
        ({"table": "t", "url": "jdbc:postgresql://h/d?user=a&password=b"}, "use option 'password'"),
        ({"table": "t", "url": "jdbc:postgresql://a:b@h/d"}, "use option 'password'"),
        ({"table": "t", "cursor_column": "ids"}, "cursor_column names 'ids', which is not a column"),
        ({"table": "t", "lower_bound": "1"}, "given together"),
        ({"table": "t", "fetchsizes": "1"}, "unknown option 'fetchsizes'"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        validate("jdbc", {"url": URL, **given}, ["id"])


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://h/d?user=a&password=tulip-42",
        "jdbc:postgresql://h/d?sslpassword=tulip-42",
        "jdbc:postgresql://a:tulip-42@h/d",
        "jdbc:postgresql://h/d?a=with space&password=tulip-42",
        "jdbc:mysql://h/d?trustCertificateKeyStorePassword=tulip-42",
        "jdbc:mysql://h/d?password2=tulip-42",
        "jdbc:mysql://(host=h,user=a,password=tulip-42)/d",
        "jdbc:oracle:thin:scott/tulip-42@//h:1521/x",
        "jdbc:oracle:thin:scott/tulip-42@h:1521:x",
        "jdbc:oracle:oci:scott/tulip-42@x",
        "jdbc:sqlserver://h:1433;databaseName=d;trustStorePassword=tulip-42",
        "jdbc:sqlserver://h:1433;keyStorePassword=tulip-42;encrypt=true",
        "jdbc:sqlserver://h:1433;PWD=tulip-42",
        "jdbc:sqlserver://h:1433;keyStoreSecret=tulip-42",
        "jdbc:trino://h:443/d?accessToken=tulip-42",
        "jdbc:other://h?a=b&token=tulip-42",
        "jdbc:other://h?secret=tulip-42",
        "jdbc:other://h?secret_key=tulip-42",
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(OptionError, match="option 'url' of connector 'jdbc'") as caught:
        validate("jdbc", {"url": url, "table": "t"})
    assert "tulip-42" not in f"{caught.value}{caught.value.quoted}"


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://h:5432/d?user=a@b&sslmode=require&sslkey=/keys/a",
        "jdbc:mysql://h/d?passwordCharacterEncoding=UTF-8&allowPublicKeyRetrieval=true",
        "jdbc:oracle:thin:@//h:1521/x",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=h)(PORT=1521)))",
        "jdbc:oracle:thin:scott@//h:1521/x",
        "jdbc:oracle:thin:/@wallet",
        "jdbc:sqlserver://h:1433;databaseName=tokens;trustServerCertificate=true",
        "jdbc:sqlite:/data/a@b.db",
    ],
)
def test_a_url_without_a_secret_is_taken(url: str) -> None:
    validate("jdbc", {"url": url, "table": "t"})


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ("25006", DatabaseBroke, "takes no writes.*primary"),
        ("25P03", DatabaseBroke, "its driver was suspended"),
        ("57014", DatabaseBroke, "statement_timeout"),
        ("57P01", DatabaseBroke, "does not answer"),
        ("53100", DatabaseBroke, "refused: no; its disk"),
        ("58030", DatabaseBroke, "refused: no; its operating system"),
        ("40001", DatabaseBusy, "another transaction"),
        ("42501", DatabaseFailed, "grant it"),
    ],
)
def test_states_of_a_server_that_pass_allow_a_further_attempt(
    state: str, kind: type[ConnectorError], words: str
) -> None:
    found = failure(parse(URL), "ERROR: no", state)
    assert type(found) is kind
    assert re.search(words, str(found))
    assert is_permanent(found) == (kind is DatabaseFailed)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (ArrayType(IntegerType()), "integer[]"),
        (ArrayType(ArrayType(StringType())), "text[][]"),
        (ArrayType(StructType().add("a", IntegerType())), "jsonb"),
        (ArrayType(ArrayType(MapType(StringType(), IntegerType()))), "jsonb"),
        (ArrayType(VariantType()), "jsonb"),
    ],
)
def test_an_array_of_what_becomes_json_is_json_as_a_whole(kind: DataType, column: str) -> None:
    assert Postgres().type_of(kind) == column


def test_an_error_of_a_task_has_a_name_that_the_driver_makes_an_error_of() -> None:
    raised = masked(failure(parse(URL), "gone with p-secret", "08006"), ("p-secret",))
    found = error_of_task(PySparkException(f"a trace\n  TaskError: {raised}\nfurther lines"))
    assert type(found) is Unreachable
    assert "does not answer: gone with ***; check" in str(found)
    other = PySparkException("TaskError: ValueError: no")
    assert error_of_task(other) is other


@pytest.mark.parametrize(
    ("family", "text", "sql"),
    [
        ("postgresql", "Shop.Orders", '"shop"."orders"'),
        ("postgresql", 'shop."Or""d.ers"', '"shop"."Or""d.ers"'),
        ("mysql", "Shop.`Or``ders`", "`Shop`.`Or``ders`"),
    ],
)
def test_names_are_quoted_as_the_database_has_them(family: str, text: str, sql: str) -> None:
    assert str(table_name(family, text)) == sql


@pytest.mark.parametrize("text", ["a.b.c", "a b", 'a"; DROP TABLE b', ""])
def test_other_texts_are_no_names(text: str) -> None:
    with pytest.raises(ConnectorError, match="no name of a table"):
        table_name("postgresql", text)


def test_the_proof_of_a_password_is_that_of_rfc_7677() -> None:
    client = ScramClient("pencil", "rOprNGfwEbeRWgbNEkqO")
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    client._first = "n=user,r=rOprNGfwEbeRWgbNEkqO"  # noqa: SLF001 - PostgreSQL takes the user from the login
    answer = client.final(challenge)
    assert answer.endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(ScramError):
        client.check(b"v=" + base64.b64encode(b"another"))


def test_a_url_with_unknown_parameters_is_left_to_the_driver() -> None:
    assert Login("h", 1, "d", "u", "p", {"sslmode": "require"}).is_possible
    assert not Login("h", 1, "d", "u", "p", {"gsslib": "sspi"}).is_possible
    assert not Login("", 1, "d", "u", "p").is_possible
    assert "p-secret" not in repr(Login("h", 1, "d", "u", "p-secret"))
