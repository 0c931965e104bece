"""Which runner serves a definition, and which reaches what was submitted before."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from spark_runner.errors import RefusedSubmission
from spark_runner.runners.base import Backend, Runner, SparkTarget, SubmissionPlace

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "spark_job_orchestrator.runners"
"""Of other packages: the name is the master's scheme, the value a callable without arguments -> Backend."""


class Companion(Protocol):
    """What goes on beside the runners of a worker, from its start to its end."""

    def start(self) -> None:
        """Begin; returns at once."""

    def stop(self) -> None:
        """End; what it has started may go on."""


class Runners:
    """The backends that a worker has, by name; each is made when it is first asked for."""

    def __init__(
        self, makers: Mapping[str, Callable[[], Backend]], companions: Sequence[Companion] = ()
    ) -> None:
        self._makers = dict(makers)
        self._companions = companions
        self._made: dict[str, Backend] = {}

    @classmethod
    def of(cls, *runners: Runner) -> "Runners":
        """Those that have just one runner each."""
        return cls({runner.backend: partial(OneRunner, runner) for runner in runners})

    def start(self) -> None:
        """Begin what goes on beside them: for a worker, not for who only looks."""
        for companion in self._companions:
            companion.start()

    def stop(self) -> None:
        """End it."""
        for companion in self._companions:
            companion.stop()

    def for_target(self, target: SparkTarget) -> Runner:
        """The runner of a definition; raises RefusedSubmission where there can be none, NotConfigured."""
        backend = self._backend(target.backend)
        if backend is None:
            raise RefusedSubmission(
                f"no runner serves the master {target.master!r}: there are {', '.join(self._makers)}"
            )
        return backend.runner_for(target)

    def at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop what was submitted at `place`; None where none here can."""
        backend = self._backend(place.backend)
        return None if backend is None else backend.runner_at(place)

    def places(self) -> list[SubmissionPlace]:
        """All that are within reach."""
        return [
            place for name in self._makers if (backend := self._backend(name)) for place in backend.places()
        ]

    def _backend(self, name: str) -> Backend | None:
        if name not in self._made and name in self._makers:
            self._made[name] = self._makers[name]()
        return self._made.get(name)


class OneRunner:
    """A backend that has one runner for all."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def runner_for(self, target: SparkTarget) -> Runner:  # noqa: ARG002 - the protocol's
        """The only one."""
        return self._runner

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The only one, where it reaches so far."""
        return self._runner if self._runner.reaches(place) else None

    def places(self) -> list[SubmissionPlace]:
        """Its place alone."""
        return [self._runner.place()]


def installed_backends() -> dict[str, Callable[[], Backend]]:
    """The makers of backends that other packages bring, by the scheme of their masters."""
    return {name: _maker(point) for name, point in _points().items()}


def is_installed(backend: str) -> bool:
    """Whether another package that is installed here brings this backend."""
    return backend in _points()


def _points() -> "dict[str, EntryPoint]":
    # Imported where it is used: it takes as long as all else of a command, and few have other masters.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _maker(point: "EntryPoint") -> Callable[[], Backend]:
    def make() -> Backend:
        made: Backend = point.load()()
        return made

    return make
