"""The admin operations: everything that an operator changes, each act recorded with its author."""

from orchestrator.cluster_config import ClusterConfig
from orchestrator.history.history import History
from orchestrator.nodes import Nodes
from orchestrator.operating.by_hand import Operator
from orchestrator.operating.operations import JobOperations
from orchestrator.operating.pools import PoolOperations
from orchestrator.operating.removal import Removal
from orchestrator.operating.replay import Replay
from orchestrator.operating.stops import Stops
from orchestrator.schedules.book import ScheduleStore
from queues.queue import QueueSet


class AdminOperations:
    """Jobs, pools, limits and schedules. Safe to use from several threads.

    `config` holds the limits of all workers, `schedules` the periodic jobs, `history` their measured runs.
    """

    def __init__(self, queue_set: QueueSet) -> None:
        session, nodes = queue_set.session, Nodes(queue_set.layout.root)
        operator = Operator(queue_set)
        self.stops = Stops(queue_set)
        self.jobs = JobOperations(operator, retention=lambda: self.config.read().limits.retention)
        self.removal = Removal(operator)
        self.dead = Replay(operator)
        self.config = ClusterConfig(session, nodes)
        self.pools = PoolOperations(queue_set, self.config, operator.trail)
        self.schedules = ScheduleStore(session, nodes, queue_set.clock.now_ms)
        self.history = History(session, nodes)
