"""The registry of all checks, in the order in which they run."""

from orchestrator.doctor import damage, drivers, ensemble, jobs, left_overs, pools, rights, workers

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
    workers.check_twins,
    workers.check_sizes,
    pools.check_pools,
    pools.check_service,
    pools.check_sparks,
    jobs.check_schedules,
    pools.check_limits,
    ensemble.check_servers,
    ensemble.check_clocks,
    ensemble.check_latency,
    rights.check_rights,
)
