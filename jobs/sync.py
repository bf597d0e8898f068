"""Keeps jobs_subscription (which producers fan out from) and jobs_job in step with routes and schedule in the code."""

from __future__ import annotations

from typing import Any

from jobs import catalog
from jobs.schedule import store
from jobs.schedule.declared import load_schedule
from jobs.subscriptions import load_routes


def ensure_subscriptions() -> dict[str, int]:
    """Create what is missing and return every route's subscription id; each worker begins with it.

    Changes nothing that exists, so that an old worker starting late never narrows what newer code has declared.
    """
    catalog.ensure_message_partitions()
    routes = load_routes()
    catalog.insert_missing_subscriptions(list(routes.values()))
    ids = catalog.subscription_ids()
    return {name: ids[name] for name in routes}


def sync_after_migrate(**_: Any) -> None:
    """After each migrate: create what is missing, and make types, ordering and crons follow the code."""
    if not catalog.is_current():
        return  # somebody migrates backwards, and what the code says cannot be followed
    catalog.ensure_message_partitions()
    catalog.insert_missing_subscriptions(list(load_routes().values()))
    catalog.update_subscriptions(list(load_routes().values()))
    jobs = list(load_schedule().values())
    store.insert_missing_jobs(jobs)
    store.follow_code(jobs)
