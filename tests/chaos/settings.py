"""Settings of the processes under chaos: the product's own, with two subscriptions more and, for a short run, a shorter
lease and everything that is derived from it in the same measure. CHAOS_LEASE says how long, in seconds."""

from winecellar.settings import *  # noqa: F403
from winecellar.settings import env, timedelta

QUEUE_ROUTES = "tests.chaos.routes"
# A promise of the product's, which a long run keeps; only a run of a minute cannot wait for it five times.
PROMISED_LEASE = 30.0
CHAOS_LEASE = env.float("CHAOS_LEASE", default=PROMISED_LEASE)
if CHAOS_LEASE < PROMISED_LEASE:
    _shorter = CHAOS_LEASE / PROMISED_LEASE
    VISIBILITY_TIMEOUT = timedelta(seconds=CHAOS_LEASE)
    HANDLER_TIME_LIMIT = timedelta(seconds=25 * _shorter)
    WORKER_WATCHDOG = timedelta(seconds=2 * CHAOS_LEASE)
    RETRY_BACKOFF_BASE = timedelta(seconds=_shorter)
    BREAKER_FIRST_WAIT = timedelta(seconds=5 * _shorter)
    BREAKER_LONGEST_WAIT = timedelta(seconds=10 * _shorter)
    MAIL_TIMEOUT = timedelta(seconds=3)
    ANYMAIL = {**ANYMAIL, "REQUESTS_TIMEOUT": 3.0}  # noqa: F405
    EXTERNAL_TIME_LIMIT = timedelta(seconds=20)
    PAYMENT_TIMEOUT = timedelta(seconds=5)
    AWAY_LONGEST_WAIT = timedelta(seconds=2 * CHAOS_LEASE)
    REDRIVE_TURN = timedelta(seconds=1)
# In every run: reservations run out, what was pending is asked again, and what nobody could tell comes to a person.
RESERVATION_TIME = timedelta(seconds=2.5 * CHAOS_LEASE)
PAYMENT_ASK_AGAIN = timedelta(seconds=CHAOS_LEASE / 2)
PAYMENT_PATIENCE = timedelta(seconds=10 * CHAOS_LEASE)
REDRIVE_RATE = 500  # its letters are many, and the run is short
FEED_REQUESTS_PER_MINUTE = 1_000_000
ALERT_COOLDOWN = timedelta(0)  # its market does in a minute what another does in a month
ALERTS_PER_USER = 100_000
