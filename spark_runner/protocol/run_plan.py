"""The run plan: the JSON document in which a worker describes one run to its driver.

Workers write it, and drivers read it on nodes that have only Java and PySpark, so this module imports the
standard library alone. `JarDriver.java` reads the same document.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_runner.protocol.errors import PlanError

_MAX_QUOTED_CHARACTERS = 200
_REMEDY = "the worker and the driver must have the same version; submit the job again"
_PROGRAMS = ("python", "jar", "sql")


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """The job of a run, by the names that its logs use."""

    id: str
    name: str
    attempt: int
    pool: str
    deploy_mode: str

    def to_json(self) -> dict[str, Any]:
        """The form inside the document."""
        return {
            "id": self.id,
            "name": self.name,
            "attempt": self.attempt,
            "pool": self.pool,
            "deploy_mode": self.deploy_mode,
        }

    @classmethod
    def of(cls, document: object) -> "PlannedJob":
        """Read that form; raises PlanError."""
        keys = _Keys("its job", document)
        job = cls(
            id=keys.text("id"),
            name=keys.text("name"),
            attempt=keys.take("attempt", int),
            pool=keys.text("pool"),
            deploy_mode=keys.text("deploy_mode"),
        )
        keys.finish()
        return job


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """A user's Python file: its name, its text and its arguments."""

    file: str
    text: str
    arguments: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form inside the document."""
        return {"file": self.file, "text": self.text, "arguments": list(self.arguments)}

    @classmethod
    def of(cls, document: object) -> "PythonProgram":
        """Read that form; raises PlanError."""
        keys = _Keys("its program", document)
        program = cls(keys.text("file"), keys.text("text"), keys.texts("arguments"))
        keys.finish()
        return program


@dataclass(frozen=True, slots=True)
class JarProgram:
    """The main class of a user's jar, and its arguments."""

    main_class: str
    arguments: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form inside the document."""
        return {"class": self.main_class, "arguments": list(self.arguments)}

    @classmethod
    def of(cls, document: object) -> "JarProgram":
        """Read that form; raises PlanError."""
        keys = _Keys("its program", document)
        program = cls(keys.text("class"), keys.texts("arguments"))
        keys.finish()
        return program


@dataclass(frozen=True, slots=True)
class SqlProgram:
    """A compiled SQL script, as `spark_runner.sql.compiler.compile` writes it.

    Its steps come from ZooKeeper, where another program may have written them:
    `spark_runner.sql.restrictions` checks them before they run.
    """

    script: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The form inside the document."""
        return dict(self.script)


Program = PythonProgram | JarProgram | SqlProgram


@dataclass(frozen=True, slots=True)
class PlannedPackages:
    """The installed packages of a job: a folder for its Python path."""

    folder: str  # absolute on the worker's host; else the name to which Spark unpacks their archive
    python: str  # the version that they were installed for
    platform: str
    compiled: bool  # whether they run there alone

    def to_json(self) -> dict[str, Any]:
        """The form inside the document."""
        return {
            "folder": self.folder,
            "python": self.python,
            "platform": self.platform,
            "compiled": self.compiled,
        }

    @classmethod
    def of(cls, document: object) -> "PlannedPackages":
        """Read that form; raises PlanError."""
        keys = _Keys("its packages", document)
        packages = cls(
            keys.text("folder"), keys.text("python"), keys.text("platform"), keys.take("compiled", bool)
        )
        keys.finish()
        return packages


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One submission of one attempt: what to run, and how to report on it."""

    run: str
    run_key: str
    attempt_path: str
    stop_path: str
    incarnation: str
    job: PlannedJob
    lease_seconds: float  # a driver without contact to ZooKeeper for longer ends itself
    zookeeper: Mapping[str, Any]  # session settings, as `SessionSettings.for_plan` writes them
    program: Program
    directory: str = ""  # the folder of the definition, to which relative paths refer; empty without one
    secrets: tuple[str, ...] = ()  # values that the driver masks in all that it reports
    references: Mapping[str, Any] = field(default_factory=dict)  # where references find their values
    delivered: Mapping[str, Any] = field(default_factory=dict)  # how far pushes of earlier attempts have come
    packages: PlannedPackages | None = None  # of `requirements`
    warm: str = ""  # the run directory of the warm server whose JVM runs it; empty for its own JVM

    def to_json(self) -> dict[str, Any]:
        """The document."""
        document: dict[str, Any] = {
            "run": self.run,
            "run_key": self.run_key,
            "attempt_path": self.attempt_path,
            "stop_path": self.stop_path,
            "incarnation": self.incarnation,
            "job": self.job.to_json(),
            "lease_seconds": self.lease_seconds,
            "zookeeper": dict(self.zookeeper),
            "directory": self.directory,
            _key_of(self.program): self.program.to_json(),
            "secrets": list(self.secrets),
        }
        if self.references:
            document["references"] = dict(self.references)
        if self.delivered:
            document["delivered"] = dict(self.delivered)
        if self.packages is not None:
            document["packages"] = self.packages.to_json()
        return in_warm_server(document, self.warm) if self.warm else document

    @classmethod
    def of(cls, document: object) -> "RunPlan":
        """Read the document; raises PlanError for missing and unknown keys and for wrong types."""
        keys = _Keys("it", document)
        plan = cls(
            run=keys.text("run"),
            run_key=keys.text("run_key"),
            attempt_path=keys.text("attempt_path"),
            stop_path=keys.text("stop_path"),
            incarnation=keys.text("incarnation"),
            job=PlannedJob.of(keys.take("job", dict)),
            lease_seconds=keys.take("lease_seconds", int, float),
            zookeeper=keys.take("zookeeper", dict),
            program=_program_of(keys),
            directory=keys.text("directory", ""),
            secrets=keys.texts("secrets", []),
            references=keys.take("references", dict, default={}),
            delivered=keys.take("delivered", dict, default={}),
            packages=PlannedPackages.of(keys.take("packages", dict)) if "packages" in keys else None,
            warm=keys.text("warm", ""),
        )
        keys.finish()
        return plan

    @classmethod
    def read(cls, path: Path) -> "RunPlan":
        """Read the file of a run; raises PlanError or OSError."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise PlanError(f"the run plan {path} is not JSON: {error}; submit the job again") from error
        return cls.of(document)


@dataclass(frozen=True, slots=True)
class PlanOutline:
    """The facts of a plan that runners and log collectors use.

    The plan may be damaged, of another version, or that of a warm server: a value that is missing or has
    another type is empty.
    """

    job_id: str = ""
    job_name: str = ""
    pool: str = ""
    deploy_mode: str = ""
    run_key: str = ""
    attempt_path: str = ""
    directory: str = ""
    runs_jar: bool = False

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "PlanOutline":
        """The facts in a document; raises nothing."""
        job = document.get("job")
        job = job if isinstance(job, Mapping) else {}
        return cls(
            job_id=_text_in(job, "id"),
            job_name=_text_in(job, "name"),
            pool=_text_in(job, "pool"),
            deploy_mode=_text_in(job, "deploy_mode"),
            run_key=_text_in(document, "run_key"),
            attempt_path=_text_in(document, "attempt_path"),
            directory=_text_in(document, "directory"),
            runs_jar="jar" in document,
        )


def in_warm_server(document: Mapping[str, Any], server: str) -> dict[str, Any]:
    """The document of a plan whose driver uses the JVM of the warm server in this run directory."""
    return {**document, "warm": server}


def for_jar_driver(document: Mapping[str, Any], rules: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a plan for `JarDriver.java`, with the exit codes and patterns that it must share."""
    return {**document, "driver": dict(rules)}


class _Keys:
    """Reads one JSON object key by key; keys that are left at the end are unknown."""

    def __init__(self, what: str, document: object) -> None:
        if not isinstance(document, dict):
            raise PlanError(f"the run plan is damaged: {what} is not a JSON object; {_REMEDY}")
        self._what, self._left = what, dict(document)

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str, *types: type, **default: Any) -> Any:
        """The value of a key; raises PlanError if it is missing or has none of the types."""
        if key not in self._left:
            if "default" in default:
                return default["default"]
            raise PlanError(f"the run plan is damaged: {self._what} has no {key!r}; {_REMEDY}")
        value = self._left.pop(key)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            expected = " or ".join(kind.__name__ for kind in types)
            found = type(value).__name__
            raise PlanError(f"the run plan is damaged: {key!r} is {found}, expected {expected}; {_REMEDY}")
        return value

    def text(self, key: str, *default: str) -> str:
        """A string."""
        value: str = self.take(key, str, **({"default": default[0]} if default else {}))
        return value

    def texts(self, key: str, *default: list[str]) -> tuple[str, ...]:
        """A list of strings."""
        value: list[Any] = self.take(key, list, **({"default": default[0]} if default else {}))
        if not all(isinstance(item, str) for item in value):
            raise PlanError(f"the run plan is damaged: {key!r} holds more than strings; {_REMEDY}")
        return tuple(value)

    def finish(self) -> None:
        """Refuse the keys that nothing has read; raises PlanError."""
        if self._left:
            names = ", ".join(map(repr, sorted(self._left)))[:_MAX_QUOTED_CHARACTERS]
            raise PlanError(f"the run plan is damaged: {self._what} has the unknown keys {names}; {_REMEDY}")


def _key_of(program: Program) -> str:
    match program:
        case PythonProgram():
            return "python"
        case JarProgram():
            return "jar"
        case SqlProgram():
            return "sql"


def _program_of(keys: _Keys) -> Program:
    present = [key for key in _PROGRAMS if key in keys]
    if len(present) != 1:
        raise PlanError(
            f"the run plan is damaged: it has {len(present)} programs, expected exactly one of "
            f"{', '.join(_PROGRAMS)}; {_REMEDY}"
        )
    document = keys.take(present[0], dict)
    match present[0]:
        case "python":
            return PythonProgram.of(document)
        case "jar":
            return JarProgram.of(document)
        case _:
            return SqlProgram(document)


def _text_in(document: Mapping[str, Any], key: str) -> str:
    return str(document.get(key) or "")
