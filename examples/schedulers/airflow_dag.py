"""Airflow: a day's update, whose files lie in a folder that is called like the day."""

from __future__ import annotations

import datetime as dt
import os

import steps  # lies beside this file, in the folder of DAGs
from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

WAREHOUSE = os.environ.get("WAREHOUSE", "/srv/warehouse/warehouse.toml")
UPDATES = os.environ.get("UPDATES", "/srv/warehouse/updates")
AGAIN = {"retries": 3, "retry_delay": dt.timedelta(minutes=1)}


@task(**AGAIN)
def check(day: str) -> bool:
    try:
        return steps.check(WAREHOUSE, f"{UPDATES}/{day}")
    except steps.HopelessError as error:
        raise AirflowFailException(str(error)) from error  # no retry


@task(**AGAIN)
def maintain(day: str, alone: bool) -> str:
    try:
        return steps.maintain(WAREHOUSE, f"{UPDATES}/{day}", day, alone=alone)
    except steps.HopelessError as error:
        raise AirflowFailException(str(error)) from error


# One day after the other: the views are in one state.
@dag(schedule="@daily", start_date=dt.datetime(2026, 1, 1, tzinfo=dt.UTC), catchup=False, max_active_runs=1)
def warehouse() -> None:
    day = "{{ ds }}"
    maintain(day, check(day))


warehouse()
