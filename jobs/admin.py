"""The queue in the admin: each part registers itself.

The operators' page and the subscriptions are in admin_operations.py, the schedule and its incidents in
admin_schedule.py, dead letters in admin_dead_letters.py, journeys in admin_journeys.py.
"""

from jobs import admin_dead_letters, admin_journeys, admin_operations, admin_schedule
from jobs.read_only import ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "admin_dead_letters", "admin_journeys", "admin_operations", "admin_schedule"]
