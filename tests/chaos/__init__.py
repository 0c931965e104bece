"""Faults under load: actors in processes, each behind a proxy; a nemesis that injects faults; a checker.

`proxy` (with `link`, `frames`) breaks connections; `nemesis` applies a `schedule` of `faults` to each
`actor_process`; actors write a `history` of `events` with the help of `actor_control`; afterwards `checker`
judges all histories and the last `snapshot` by `rules`, and makes a `report`. The checker itself is tested
with the random runs of `model` and the synthetic histories of `trace`.
"""
