"""The options of topics of Apache Kafka, also by the keys of Spark and of both generations of Flink."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from spark_runner.connectors.csv_texts import ESCAPE, refuse_ambiguous_escape
from spark_runner.connectors.errors import ConnectorError, OptionError
from spark_runner.connectors.kafka.changes import CHANGE_METADATA, DEBEZIUM
from spark_runner.connectors.kafka.option_names import ALIASES, WITHOUT_EFFECT
from spark_runner.connectors.kafka.option_values import AnyCase, Listed, Mark, Marks
from spark_runner.connectors.kafka.positions import EARLIEST, FORMS, GROUP, SPECIFIC, TIMESTAMP, position
from spark_runner.connectors.options import ConnectorOptions, Guarantee
from spark_runner.protocol.text import did_you_mean

Format = Literal["json", "csv", "raw", "avro"]
_FIXED = {  # settings of Kafka's clients that the source and the sink decide
    **dict.fromkeys(("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"), ""),
    "auto.offset.reset": "; the option starting_offsets says where a stream begins",
    "enable.auto.commit": "; the checkpoint keeps the position",
    "interceptor.classes": "",
}
_NOT_OF_EVENTS = {
    **dict.fromkeys(
        ("key_fields", "key_format", "value_fields_include"), "its events have all columns in the value"
    ),
    "delete_column": "declare a column `deleted BOOLEAN METADATA`",
    "min_partitions": "it divides a partition between tasks, and the changes of a row would lose their order",
}


class KafkaOptions(ConnectorOptions):
    """Topics of Apache Kafka.

    The `PRIMARY KEY` of a table is the key of the records that it writes. `upsert-kafka` is another name
    for a table with `version` `universal-upsert`.
    """

    streams: ClassVar[bool] = True
    unbounded: ClassVar[bool] = True
    reads_in_batch: ClassVar[bool] = True
    only_adds: ClassVar[bool] = True
    upserts: ClassVar[bool] = True
    metadata: ClassVar[tuple[str, ...]] = (
        *("key", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers"),
    )
    # A use has no folder for a path. An INSERT into what it reads is right by the marks of the tables.
    deciding: ClassVar[frozenset[str]] = frozenset({"avro_schema_file", "mark", "skip_mark"})
    files: ClassVar[tuple[str, ...]] = ("avro_schema_file",)
    unwritten: ClassVar[frozenset[str]] = frozenset(
        {"streaming", "max_offsets_per_trigger", "tombstones", "mark", "skip_mark", "escape"}
    )
    aliases: ClassVar[Mapping[str, str]] = ALIASES
    prefixes: ClassVar[Mapping[str, str]] = {"properties.": "properties", "kafka.": "properties"}
    without_effect: ClassVar[tuple[str, ...]] = WITHOUT_EFFECT
    topic: Listed = Field((), description="the topics to read, or the one to write")
    topic_pattern: str = Field(
        "", description="instead of `topic`, to read: a Java regular expression for whole names of topics"
    )
    subscribe_pattern: str = Field(
        "", description="the same, but it may match any part of a name, as in Spark"
    )
    bootstrap_servers: str = Field(min_length=1, description="`host:port`, separated by commas")
    format: Literal[Format, "debezium-json"] = Field(
        "json",
        description="the format of values: `json`, `csv`, `raw` (one column) or `avro`; to read, also"
        " `debezium-json`",
    )
    key_format: Format | None = Field(
        None, description="the format of keys; by default `raw` for one column, else `json`"
    )
    key_fields: Listed = Field((), description="columns that are the key of a record; not with a PRIMARY KEY")
    value_fields_include: Annotated[Literal["all", "except_key"], AnyCase] = Field(
        "all", description="`all`: the value has the columns of the key, too; `except_key`: it does not"
    )
    starting_offsets: str = Field(
        EARLIEST,
        description="where it begins: `earliest`, `latest`, `group-offsets`, a time with its zone, or"
        ' offsets as `partition:0,offset:42;...` or JSON `{"topic": {"0": 42}}`',
    )
    starting_timestamp: int | None = Field(
        None, ge=0, description="for `starting_offsets` `timestamp`: milliseconds since 1970"
    )
    specific_offsets: str = Field("", description="for `starting_offsets` `specific-offsets`: the offsets")
    ending_offsets: str = Field(
        "latest", description="where a read in mode batch ends: `latest`, a time, or offsets"
    )
    max_offsets_per_trigger: int = Field(
        1_000_000, ge=1, le=1_000_000_000, description="records of one micro-batch"
    )
    min_partitions: int = Field(
        0,
        ge=0,
        le=100_000,
        description="the number of tasks that read, if it is above the number of partitions",
    )
    fail_on_data_loss: bool = Field(
        True, description="fail if records are deleted before they are read; `false` skips them"
    )
    streaming: bool = Field(True, description="in a stream: `false` reads all records once, for joins")
    ignore_parse_errors: bool = Field(
        False, description="leave out values that do not fit the columns, and count them as dropped"
    )
    fail_on_missing_field: bool = Field(
        False,
        description="for JSON: a value without one of the columns does not fit; by default the column is"
        " NULL. `true` for `debezium-json`",
    )
    timestamp_format: Literal["ISO-8601", "SQL"] = Field(
        "ISO-8601", description="the format of times in written JSON"
    )
    delimiter: str = Field(",", min_length=1, max_length=1, description="for CSV: one character")
    null_value: str = Field("", description="for CSV: the text that means NULL")
    escape: str = Field(
        ESCAPE,
        min_length=1,
        max_length=1,
        description='for CSV: the character before a quote within quotes; `"` doubles the quote',
    )
    avro_schema: str = Field(
        "",
        description="for Avro values: the schema as JSON, or a reference; by default made from the columns",
    )
    avro_schema_file: str = Field(
        "",
        description="the file with that schema instead: a path relative to the definition's folder, or a URL",
    )
    topic_column: str = Field("", description="the column with the topic of each record")
    headers_column: str = Field("", description="the column with the headers: a MAP of STRING")
    delete_column: str = Field(
        "", description="a BOOLEAN column: if true, the record has no value, which deletes its key"
    )
    tombstones: bool | None = Field(
        None,
        description="for `debezium-json`: a record without a value is a delete of its key; by default `true`"
        " for tables with METADATA `deleted` or `op`",
    )
    mark: Mark = Field(
        "",
        description="a mark that each written record gets as a header, so that `skip_mark` can leave it out",
    )
    skip_mark: Marks = Field(
        (), description="marks whose records are left out, such as those that the job itself wrote"
    )
    version: Literal["universal", "universal-upsert", "0.11", "0.10"] = Field(
        "universal",
        description="`universal-upsert`: the records need a key, and the table can only be written",
    )
    group_id: str = Field("", description="the consumer group: for privileges, and for `group-offsets`")
    security_protocol: Literal["", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "", description="by default `SASL_SSL` with a user name, else `SSL` with certificates"
    )
    sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "",
        description="`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512` (the default with a user name)",
    )
    username: str = Field("", description="the user of a SASL login")
    password: str = Field("", description="its password, as a reference")
    ssl_ca: str = Field("", description="the certificates of trusted authorities, as PEM")
    ssl_certificate: str = Field("", description="the certificate of this client with its chain, as PEM")
    ssl_key: str = Field("", description="its private key, PKCS #8 as PEM, as a reference")
    ssl_key_password: str = Field("", description="the password of that key, as a reference")
    properties: dict[str, str] = Field(
        {}, description="more settings of Kafka's clients: `properties.NAME` or `kafka.NAME`"
    )

    @field_validator("starting_offsets")
    @classmethod
    def _is_position(cls, value: str) -> str:
        return _position(value)

    @field_validator("ending_offsets")
    @classmethod
    def _is_end(cls, value: str) -> str:
        if (found := _position(value)) in {EARLIEST, GROUP, TIMESTAMP, SPECIFIC}:
            raise ValueError("a read ends at latest, a time with its zone, or offsets")
        return found

    @field_validator("properties")
    @classmethod
    def _can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name.lower() in _FIXED:
                raise ValueError(f"'{name}' cannot be set{_FIXED[name.lower()]}")
        return value

    @model_validator(mode="before")
    @classmethod
    def _strict(cls, values: object) -> object:
        """An event has all columns of its table in the database: one that lacks some is a changed table."""
        if isinstance(values, Mapping) and values.get("format") == DEBEZIUM:
            return {"fail_on_missing_field": True, **values}
        return values

    @model_validator(mode="after")
    def _fit_together(self) -> "KafkaOptions":
        if [bool(self.topic), bool(self.topic_pattern), bool(self.subscribe_pattern)].count(True) != 1:
            raise OptionError("connector 'kafka' needs option 'topic' or 'topic_pattern'")
        if self.starting_offsets == TIMESTAMP and self.starting_timestamp is None:
            raise OptionError("starting_offsets 'timestamp' needs option 'starting_timestamp'")
        if self.starting_offsets == SPECIFIC and not self.specific_offsets:
            raise OptionError("starting_offsets 'specific-offsets' needs option 'specific_offsets'")
        if self.avro_schema and self.avro_schema_file:
            raise OptionError("give 'avro_schema' or 'avro_schema_file', not both")
        if (self.avro_schema or self.avro_schema_file) and self.format != "avro":
            raise OptionError("'avro_schema' and 'avro_schema_file' need 'format' = 'avro'")
        if bool(self.ssl_certificate) != bool(self.ssl_key):
            raise OptionError("'ssl_certificate' and 'ssl_key' are given together")
        if self.username and not self.password:
            raise OptionError("option 'username' needs option 'password'")
        if self.specific_offsets:
            try:
                position(self.specific_offsets)
            except ConnectorError as error:
                raise OptionError(f"option 'specific_offsets': {error}") from error
        return self

    @model_validator(mode="after")
    def _fit_change_events(self) -> "KafkaOptions":
        if self.format != DEBEZIUM:
            if self.tombstones is not None:
                raise OptionError(f"option 'tombstones' needs 'format' = '{DEBEZIUM}'", option="tombstones")
            return self
        for name, hint in _NOT_OF_EVENTS.items():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise OptionError(f"format '{DEBEZIUM}' has no option '{name}': {hint}", option=name)
        return self

    def known_metadata(self) -> tuple[str, ...]:
        """What Kafka keeps of a record, and what an event of Debezium says of a change."""
        return (*self.metadata, *(CHANGE_METADATA if self.format == DEBEZIUM else ()))

    def with_metadata(self, fields: Sequence[str]) -> Self:
        """A tombstone has the columns of its key alone: it is a row only where that shows a delete."""
        if self.format != DEBEZIUM or self.tombstones is not None:
            return self
        return self.model_copy(update={"tombstones": _shows_deletes(fields)})

    def doubt(self, fields: Sequence[str]) -> str:
        """Deletes are rows, which may look like others."""
        if self.format != DEBEZIUM or _shows_deletes(fields):
            return ""
        return "deletes are rows of it, too; declare `deleted BOOLEAN METADATA` to tell them from others"

    @classmethod
    def check_position(cls, position: str) -> None:
        """A position is `earliest`, `latest`, a time, or offsets."""
        try:
            found = _position(position)
        except ValueError as error:
            raise OptionError(str(error)) from error
        if found in {TIMESTAMP, SPECIFIC}:
            raise OptionError(f"it is no position in a topic; {FORMS}")

    def refusal_of_reads(self) -> str:
        """A table of upserts has no single meaning as rows."""
        if self.version == "universal-upsert":
            return (
                "it is one of upserts, whose newest rows are not computed; declare another table of connector"
                " 'kafka' with 'key_fields' and 'delete_column' for its changes"
            )
        return ""

    def refusal_of_writes(self, *, has_primary_key: bool) -> str:
        """An INSERT needs a topic, and a key where records replace each other."""
        if self.format == DEBEZIUM:
            hint = "write 'json', with a PRIMARY KEY and option 'delete_column'"
            return f"format '{DEBEZIUM}' is only read; {hint}"
        if not self.topic_column and len(self.topic) != 1:
            given = "several topics" if self.topic else "the topics of a pattern"
            return f"it reads {given}; a table to write has one 'topic', or the option 'topic_column'"
        if len(self.topic) > 1:
            return "with 'topic_column', 'topic' is the one for rows without their own"
        if not (has_primary_key or self.key_fields) and (
            self.delete_column or self.version == "universal-upsert"
        ):
            return "the records need a key: declare a PRIMARY KEY, or give option 'key_fields'"
        return ""

    def place(self) -> str:
        """The servers and the topics; a pattern begins with `?`, which no topic has."""
        servers = ",".join(sorted(each.strip() for each in self.bootstrap_servers.split(",")))
        pattern = f"^{self.topic_pattern}$" if self.topic_pattern else self.subscribe_pattern
        topics = ",".join(sorted(self.topic)) or f"?{pattern}"
        return f"kafka://{servers}/{topics}"

    def guarantee(self, *, has_primary_key: bool) -> Guarantee:  # noqa: ARG002 - of ConnectorOptions
        """A repeated task or micro-batch writes its records again, also those with a key."""
        return Guarantee.AT_LEAST_ONCE

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that columns are declared, and that the options name only them."""
        if not columns:
            raise OptionError("a table of connector 'kafka' needs declared columns")
        refuse_ambiguous_escape(self.escape, self.delimiter)
        known = {name.lower() for name in columns}
        special = [self.topic_column, self.headers_column, self.delete_column]
        named = {"topic_column": special[:1], "headers_column": special[1:2], "delete_column": special[2:]}
        for option, names in {"key_fields": self.key_fields, **named}.items():
            for name in names:
                if name and name.lower() not in known:
                    message = f"{option} names '{name}', which is not a column{did_you_mean(name, columns)}"
                    raise OptionError(message, option=option, fault="value", quoted=name)


def _shows_deletes(fields: Sequence[str]) -> bool:
    return not {"deleted", "op"}.isdisjoint(fields)


def _position(value: str) -> str:
    try:
        return position(value) if not value.isdigit() else value
    except ConnectorError as error:
        raise ValueError(str(error)) from error
