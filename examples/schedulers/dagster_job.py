"""Dagster: a day's update, whose files lie in a folder that is called like the day."""

import os

import dagster as dg
import steps  # lies beside this file

WAREHOUSE = os.environ.get("WAREHOUSE", "/srv/warehouse/warehouse.toml")
UPDATES = os.environ.get("UPDATES", "/srv/warehouse/updates")
AGAIN = dg.RetryPolicy(max_retries=3, delay=60)


@dg.op(retry_policy=AGAIN)
def check(context: dg.OpExecutionContext) -> bool:
    try:
        return steps.check(WAREHOUSE, f"{UPDATES}/{context.partition_key}")
    except steps.HopelessError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


@dg.op(retry_policy=AGAIN)
def maintain(context: dg.OpExecutionContext, alone: bool) -> str:
    day = context.partition_key
    try:
        return steps.maintain(WAREHOUSE, f"{UPDATES}/{day}", day, alone=alone)
    except steps.HopelessError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


@dg.job(partitions_def=dg.DailyPartitionsDefinition(start_date="2026-01-01"))
def warehouse() -> None:
    maintain(check())


defs = dg.Definitions(jobs=[warehouse], schedules=[dg.build_schedule_from_partitioned_job(warehouse)])
