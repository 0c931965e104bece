"""Errors of `orchestrator`: one tree, each message fit for a user."""


class OrchestratorError(Exception):
    """Base of every error of this package."""


class DefinitionError(OrchestratorError):
    """A job definition or its script cannot be accepted; nothing was enqueued."""


class SettingsError(OrchestratorError):
    """A setting has a value that cannot be used."""


class StateDirectoryError(OrchestratorError):
    """The state directory cannot be written."""


class NotRunning(OrchestratorError):
    """No ZooKeeper is configured and none was started on this machine."""


class AlreadyEnded(OrchestratorError):
    """The job has ended; what was asked for can no longer be done."""


class WaitTimeout(OrchestratorError):
    """The job had not ended when the time to wait was over."""


class NoSuchAttempt(OrchestratorError):
    """The job has no attempt of this number, so there are no logs of it."""


class LogsElsewhere(OrchestratorError):
    """The logs of the job are on another host."""


class TooManyClaims(OrchestratorError):
    """A job was claimed again and again and nothing came of it: it may end the workers that handle it."""


class NotLeading(OrchestratorError):
    """This worker does not lead, or another one may do so by now."""
