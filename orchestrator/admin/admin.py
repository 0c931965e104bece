"""The admin operations: everything that an operator changes, each act recorded with its author."""

from orchestrator.admin.adjustments import Adjustments
from orchestrator.admin.drains import Drains
from orchestrator.admin.job_changes import Operator
from orchestrator.admin.name_slot import NameSlots
from orchestrator.admin.operations import JobOperations
from orchestrator.admin.pools import PoolOperations
from orchestrator.admin.removal import Removal
from orchestrator.admin.replay import Replay
from orchestrator.admin.stops import Stops
from orchestrator.config.live_limits import ClusterConfig
from orchestrator.connections.store import ConnectionStore
from orchestrator.history.history import History
from orchestrator.history.successes import KnownSuccesses
from orchestrator.model.paths import Nodes
from orchestrator.tuning.store import TuningStore
from queues import QueueSet


class AdminOperations:
    """Jobs, pools and limits. Safe to use from several threads.

    `config` holds the limits of all workers, `history` the measured runs, `tunings` the resources chosen
    from them, `connections` the connections of scripts, `names` the slots of job names.
    """

    def __init__(self, queue_set: QueueSet) -> None:
        session, nodes = queue_set.session, Nodes(queue_set.layout.root)
        operator = Operator(queue_set)
        self.stops = Stops(queue_set)
        self.adjustments = Adjustments(operator)
        self.jobs = JobOperations(
            operator,
            retention=lambda: self.config.read().limits.retention,
            successes=KnownSuccesses(session, nodes),
        )
        self.removal = Removal(operator)
        self.dead = Replay(operator)
        self.drains = Drains(queue_set, operator.trail)
        self.config = ClusterConfig(session, nodes)
        self.pools = PoolOperations(queue_set, self.config, operator.trail)
        self.connections = ConnectionStore(session, nodes)
        self.history = History(session, nodes)
        self.tunings = TuningStore(session, nodes)
        self.names = NameSlots(queue_set)
