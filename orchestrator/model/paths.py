"""Paths of the nodes of the orchestrator outside the queues."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nodes:
    """Paths below the root of one orchestrator; `Layout` has those of items, tokens, locks and pools."""

    root: str

    @property
    def workers(self) -> str:
        """The folder of the workers' announcements."""
        return f"{self.root}/workers"

    def worker(self, name: str) -> str:
        """The announcement of a worker: an ephemeral node of its session.

        JSON: host, boot id, pid, session, version, slots, pools, the backends it sees, its running jobs, and
        why it refuses new ones.
        """
        return f"{self.workers}/{name}"

    @property
    def drains(self) -> str:
        """The folder of the requests to drain workers."""
        return f"{self.root}/drains"

    def drain(self, worker: str) -> str:
        """The request to drain one worker. A worker's name belongs to one process and is never used again."""
        return f"{self.drains}/{worker}"

    @property
    def leader(self) -> str:
        """The leader: an ephemeral node of its session.

        JSON: worker, host, pid, session, and the time since which it leads.
        """
        return f"{self.root}/leader"

    @property
    def term(self) -> str:
        """The node that each election writes: its version fences writes of an earlier leader.

        JSON: as the node of the leader.
        """
        return f"{self.config}/leader-term"

    @property
    def config(self) -> str:
        """The limits of all workers, which `config set` changes; those of the pools are below it.

        JSON: limits by name, without those that have their default.
        """
        return f"{self.root}/config"

    @property
    def capped(self) -> str:
        """The folder of the capped pools."""
        return f"{self.root}/slots"

    def slots(self, pool: str) -> str:
        """The folder of the slots of a capped pool: one node per running job."""
        return f"{self.capped}/{pool}"

    def slot(self, pool: str, number: int) -> str:
        """The slot of one running job of a capped pool; it exists while the job runs, held or not.

        JSON: id, run key and attempt of the job.
        """
        return f"{self.slots(pool)}/{number}"

    @property
    def named(self) -> str:
        """The folder of the job names with a limit on running jobs."""
        return f"{self.root}/named"

    def name_slots(self, name: str) -> str:
        """The folder of the slots of one job name: one node per running job."""
        return f"{self.named}/{name}"

    def name_slot(self, name: str, number: int) -> str:
        """The slot of one running job of a name with limited `concurrency`.

        JSON: id, run key and attempt of the job.
        """
        return f"{self.name_slots(name)}/{number}"

    def water_reports(self, pool: str) -> str:
        """The folder of the workers whose jobs in a pool have reached its `high_water`."""
        return f"{self.root}/high-water/{pool}"

    def water_report(self, pool: str, worker: str) -> str:
        """The report of a worker on the fullest of these jobs: an ephemeral node of its session.

        JSON: worker, job, push, the share of its buffer that is full, `high_water`, and the time.
        """
        return f"{self.water_reports(pool)}/{worker}"

    @property
    def schedules(self) -> str:
        """The folder of the periodic jobs."""
        return f"{self.root}/schedules"

    def schedule(self, name: str) -> str:
        """One periodic job, until an operator removes it.

        JSON: definition, compiled plan, whether it is paused, its last fire, and who registered it.
        """
        return f"{self.schedules}/{name}"

    @property
    def successes(self) -> str:
        """The folder of the last success of each job name that a schedule waits for."""
        return f"{self.root}/successes"

    def success(self, name: str) -> str:
        """The last success of one name; without this node, workers do not record successes of the name."""
        return f"{self.successes}/{name}"

    @property
    def connections(self) -> str:
        """The folder of the named connections of scripts."""
        return f"{self.root}/connections"

    def connection(self, name: str) -> str:
        """One named connection, until an operator removes it.

        JSON: connector and options; secrets are references, never values.
        """
        return f"{self.connections}/{name}"

    @property
    def adjustments(self) -> str:
        """The folder of the limits of pushes that are kept for the next job of a name."""
        return f"{self.root}/adjustments"

    def adjustment(self, name: str) -> str:
        """The kept limits of one job name, which `job adjust --keep` sets.

        JSON: limits by target.
        """
        return f"{self.adjustments}/{name}"

    @property
    def positions(self) -> str:
        """The folder of how far the pushes of each job name have read their sources."""
        return f"{self.root}/positions"

    def position(self, name: str) -> str:
        """How far the pushes of one job name have read their sources.

        JSON: positions by target and lane.
        """
        return f"{self.positions}/{name}"

    @property
    def audit(self) -> str:
        """The folder of the changes of operators that are not in a log spool yet."""
        return f"{self.root}/audit"

    def audit_entry(self, name: str) -> str:
        """One change of an operator, until the leader has put it into a log spool.

        JSON: time, login, host, action, object and detail.
        """
        return f"{self.audit}/{name}"

    @property
    def histories(self) -> str:
        """The folder of the resource usage of the last runs of each name."""
        return f"{self.root}/history"

    def history(self, name: str) -> str:
        """The ring of the last runs of one name.

        JSON: for each run its job, attempt, outcome, times, settings and measurements.
        """
        return f"{self.histories}/{name}"

    @property
    def tunings(self) -> str:
        """The folder of the decisions about the resources of each name."""
        return f"{self.root}/tuning"

    def tuning(self, name: str) -> str:
        """The last decisions on the resources of one name, and what operators have set for it.

        JSON: pins, caps, mode, and decisions with their reasons.
        """
        return f"{self.tunings}/{name}"

    @property
    def log_requests(self) -> str:
        """The folder of requests for logs, with a folder for each state directory that holds logs."""
        return f"{self.root}/log-requests"

    def log_requests_of(self, store: str) -> str:
        """The folder of requests to the workers of one state directory."""
        return f"{self.log_requests}/{store}"

    def log_request(self, store: str, name: str) -> str:
        """One request for a page of logs: an ephemeral node of its reader."""
        return f"{self.log_requests_of(store)}/{name}"
