"""How far Spark has come, from its own status tracker."""

from typing import Any

from pyspark.sql import SparkSession


def stage_progress(spark: SparkSession) -> dict[str, Any]:
    """The active stages and their tasks, and the application id; cheap enough for every second."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    stages = []
    for stage_id in sorted(tracker.getActiveStageIds()):
        info = tracker.getStageInfo(stage_id)
        if info is not None:
            stages.append({"stage": stage_id, "tasks": info.numTasks, "done": info.numCompletedTasks})
    return {"application_id": context.applicationId, "stages": stages}
