"""Every scheduled job on one screen: when (cron, UTC), how long its lock lives, what if it overlaps or was missed.

Columns as in jobs/schedule/declared.py. What the outcomes mean, and what to do when an alarm opens: docs/schedule.md.
"""

from datetime import timedelta
from functools import partial

from django.conf import settings

from alerts import sleeping
from alerts.digest import weekly
from jobs import housekeeping
from jobs.schedule.declared import CatchUp, Job, Overlap
from pricing import raw_bodies
from pricing.catalogues import retention as catalogue_retention
from pricing.feeds import answers
from winecellar.accounts import retention as account_retention
from winecellar.cellars import nightly
from winecellar.cellars.selectors import worths
from winecellar.purchases import upkeep

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NIGHTLY = settings.NIGHTLY_HEARTBEAT_LIMIT
SKIP = Overlap.SKIP

SCHEDULE = [
    # What each cellar is worth, as of this hour. A night that was missed is valued as of its own time, for a week back.
    Job("value-cellars", "0 2 * * *", nightly.run, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.each(7), heartbeat=NIGHTLY, time_limit=60 * MINUTE),
    # What the week held for each person who watches something or has a cellar. A Monday that was missed is made up for
    # once: by the next week it is no news any more.
    Job("weekly-digest", "0 8 * * 1", partial(weekly.run, worths=worths), lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=7 * 24 * HOUR + 2 * HOUR, time_limit=60 * MINUTE),
    # Looks at every alarm, as the watchman does all the time; and notices when the watchman does not.
    Job("alarm-evaluation", "*/5 * * * *", housekeeping.evaluate_alarms, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.skip(), heartbeat=30 * MINUTE, time_limit=2 * MINUTE, attempts=1),
    # Reservations that ran out give their bottles back; what nobody could find out for a day comes before a person.
    Job("purchase-upkeep", "* * * * *", upkeep.run, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=15 * MINUTE, time_limit=4 * MINUTE, attempts=1),
    # Alerts whose snooze is over are compared with the prices now: the price may have moved while they slept.
    Job("alert-snoozes", "*/5 * * * *", sleeping.end_snoozes, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=30 * MINUTE, time_limit=4 * MINUTE),
    # Alerts that were deleted and not brought back in time, with their decisions and mails.
    Job("deleted-alerts", "25 3 * * *", sleeping.purge_deleted, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
    # The ledger is kept seven days. Each hour, so that no run is long.
    Job("ledger-purge", "10 * * * *", housekeeping.purge_ledger, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=6 * HOUR, time_limit=30 * MINUTE),
    # The gauges' minutes are kept two days. Each hour, for they are a hundred rows a minute.
    Job("gauge-minutes", "35 * * * *", housekeeping.purge_gauges, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=6 * HOUR, time_limit=30 * MINUTE),
    # Dead letters are kept fourteen days; those that soon go are said first (an alarm does it).
    Job("dead-letter-retention", "20 3 * * *", housekeeping.purge_dead_letters, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
    # Makes the message log's coming months, drops those past their time.
    Job("message-months", "30 3 * * *", housekeeping.keep_message_months, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=10 * MINUTE),
    # Stored answers to feed requests that no merchant will repeat any more.
    Job("feed-answers", "40 3 * * *", answers.purge, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
    # What merchants sent, as it came, for as long as a mended adapter may want to read it again.
    Job("raw-bodies", "45 3 * * *", raw_bodies.purge, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
    # Sessions that are over, mails about accounts whose links no longer work, attempts to sign in long forgotten.
    Job("account-leftovers", "55 3 * * *", account_retention.purge, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
    # Merchants' catalogue files, and long after them their reports; what broke off while it was sent.
    Job("catalogue-files", "55 3 * * *", catalogue_retention.purge, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
    # What this schedule itself leaves behind: old runs, closed incidents, processes long gone.
    Job("schedule-history", "50 3 * * *", housekeeping.purge_schedule_history, lock_ttl=MINUTE, overlap=SKIP,
        catch_up=CatchUp.latest(), heartbeat=NIGHTLY, time_limit=30 * MINUTE),
]  # fmt: skip
