"""The registry of all checks, in the order in which they run."""

from orchestrator.doctor import damage, drivers, ensemble, jobs, left_overs, pools, rights, workers
from orchestrator.doctor import ensemble as servers
from orchestrator.doctor import jobs as schedules
from orchestrator.doctor import pools as limits
from orchestrator.doctor import workers as sessions

# Each takes a `ClusterSnapshot` and yields findings.
CHECKS = (
    damage.check_queues,
    left_overs.check_locks,
    left_overs.check_stops,
    left_overs.check_slots,
    jobs.check_dead,
    jobs.check_warnings,
    jobs.check_overdue,
    drivers.check_drivers,
    drivers.check_attempts,
    workers.check_workers,
    workers.check_logs,
    sessions.check_twins,
    sessions.check_sizes,
    pools.check_pools,
    pools.check_service,
    schedules.check_schedules,
    limits.check_limits,
    servers.check_servers,
    ensemble.check_clocks,
    ensemble.check_latency,
    rights.check_rights,
)
