"""Selects the runner for a definition, and the runner that reaches an earlier submission."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import Backend, Runner, SparkTarget, SubmissionPlace

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "spark_job_orchestrator.runners"
"""The entry points of other packages: the master's scheme -> a callable without arguments -> Backend."""


class Companion(Protocol):
    """A background service beside the runners of a worker, from its start to its end."""

    def start(self) -> None:
        """Start the service; returns at once."""

    def stop(self) -> None:
        """Stop the service; processes that it has started may keep running."""


class Runners:
    """The backends of a worker, by name; each is created on first use."""

    def __init__(
        self, makers: Mapping[str, Callable[[], Backend]], companions: Sequence[Companion] = ()
    ) -> None:
        self._makers = dict(makers)
        self._companions = companions
        self._made: dict[str, Backend] = {}

    @classmethod
    def of(cls, *runners: Runner) -> "Runners":
        """A registry with one backend for each of these runners."""
        return cls({runner.backend: partial(OneRunner, runner) for runner in runners})

    def start(self) -> None:
        """Start the companions: for a worker, not for a command that only reads."""
        for companion in self._companions:
            companion.start()

    def stop(self) -> None:
        """Stop the companions."""
        for companion in self._companions:
            companion.stop()

    def for_target(self, target: SparkTarget) -> Runner:
        """The runner for a definition's target; raises RefusedSubmission if there is none, NotConfigured."""
        backend = self._backend(target.backend)
        if backend is None:
            raise RefusedSubmission(
                f"no runner serves the master {target.master!r}: known backends are {', '.join(self._makers)}"
            )
        return backend.runner_for(target)

    def at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop submissions at `place`; None if no runner here can."""
        backend = self._backend(place.backend)
        return None if backend is None else backend.runner_at(place)

    def places(self) -> list[SubmissionPlace]:
        """All places within reach."""
        return [
            place for name in self._makers if (backend := self._backend(name)) for place in backend.places()
        ]

    def _backend(self, name: str) -> Backend | None:
        if name not in self._made and name in self._makers:
            self._made[name] = self._makers[name]()
        return self._made.get(name)


class OneRunner:
    """A backend with a single runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def runner_for(self, target: SparkTarget) -> Runner:  # noqa: ARG002 - the protocol's
        """The only runner."""
        return self._runner

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The only runner, if it reaches `place`."""
        return self._runner if self._runner.reaches(place) else None

    def places(self) -> list[SubmissionPlace]:
        """The place of the only runner."""
        return [self._runner.place()]


def installed_backends() -> dict[str, Callable[[], Backend]]:
    """The factories of backends from other packages, by the scheme of their masters."""
    return {name: _maker(point) for name, point in _points().items()}


def is_installed(backend: str) -> bool:
    """Whether another installed package provides this backend."""
    return backend in _points()


def _points() -> "dict[str, EntryPoint]":
    # Imported on first use: it takes as long as the rest of a command, and few masters need it.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _maker(point: "EntryPoint") -> Callable[[], Backend]:
    def make() -> Backend:
        made: Backend = point.load()()
        return made

    return make
