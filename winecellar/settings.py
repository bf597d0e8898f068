"""All settings. What varies by machine comes from the environment (django-environ); what we promise stands below, once.

Development needs none of it set. Production needs WINECELLAR_ENV=production, SECRET_KEY, ALLOWED_HOSTS,
SITE_URL, DATABASE_URL and EMAIL_URL; `manage.py check --deploy` says what is missing.
"""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import environ

from winecellar import database_url, embedded, mail_provider, payment_provider
from winecellar.logs import configure_logging

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

PRODUCTION = env.str("WINECELLAR_ENV", default="development") == "production"
DEBUG = False  # error pages of ours everywhere: a stack trace in the browser helps nobody who is not at this keyboard

# --- What we promise. Each number stands here and nowhere else -------------------------------------------------

# The figure on the alert page and in the alarms: a price change reaches the mailbox within this time.
ALERT_PROMISE = timedelta(minutes=5)
# The alert page's other figure: a new alert is compared with the price now, within this time.
FIRST_CHECK_PROMISE = timedelta(minutes=1)
# How long an in-flight delivery is hidden. A worker silent for this long is taken for dead.
VISIBILITY_TIMEOUT = timedelta(seconds=30)
# How often a delivery is handed out before it becomes a dead letter.
MAX_RECEIVES = 5
# Full jitter: before receive n + 1 a random wait in [0, base * 2**(n-1)]: 1, 2, 4, 8, 16 s.
RETRY_BACKOFF_BASE = timedelta(seconds=1)
# In-queue redelivery ends within 5 x 30 s; routine redrive within five business days: seven days cover both.
LEDGER_RETENTION = timedelta(days=7)
# The triage runbook decides within five business days; two weeks leave room for a holiday and a doubt.
DEAD_LETTER_RETENTION = timedelta(days=14)
# Those that go within this time are said so, while there is time to decide.
DEAD_LETTER_WARN_EXPIRY = timedelta(days=2)
# Any dead letter is an event: it warns after this long ...
DEAD_LETTER_WARN_AFTER = timedelta(minutes=5)
# ... and one that nobody has looked at for this long is a page.
DEAD_LETTER_PAGE_AFTER = timedelta(minutes=15)
# The runbook decides within so many business days; what waits longer goes to whoever is above the on-call.
DEAD_LETTER_DECIDE_WITHIN_BUSINESS_DAYS = 5
# A nightly job that has not completed for a day and two hours was missed.
NIGHTLY_HEARTBEAT_LIMIT = timedelta(hours=26)
# The message log: long enough to rebuild a year's price history, plus a month to notice that one must.
MESSAGE_RETENTION = timedelta(days=400)

# --- The queue (what operators tune; see docs/decisions) -------------------------------------------------------

# Polling is what makes the queue correct; NOTIFY only makes it quick. So this is the latency without LISTEN.
WORKER_POLL_INTERVAL = timedelta(seconds=1)
WORKER_LISTEN = env.bool("WORKER_LISTEN", default=True)
# Database connections that one worker process handles price events with: one waits while another computes.
WORKER_LANES = env.int("WORKER_LANES", default=2)
# How long a worker told to stop may finish what it has begun. Below systemd's and Kubernetes' usual patience.
WORKER_GRACE = timedelta(seconds=20)
# A handler's statement or idle transaction longer than this is ended by the server: the lease is nearly gone.
HANDLER_TIME_LIMIT = timedelta(seconds=25)
# An effect outside our Postgres that takes longer hangs; the worker is replaced, for a thread cannot be ended.
EXTERNAL_TIME_LIMIT = timedelta(seconds=60)
# A breaker for another side (the mail provider): after so many failures with no more successes since the first ...
BREAKER_FAILURES = 5
BREAKER_MEMORY = timedelta(minutes=2)  # ... a failure being forgotten after so long without another ...
# ... only one effect at a time is tried, over all workers, after a random wait around 5, 10, 20, 40 s, then a minute:
# an outage of half an hour costs some forty tries, and its end is found within a minute.
BREAKER_FIRST_WAIT = timedelta(seconds=5)
BREAKER_LONGEST_WAIT = timedelta(minutes=1)
# A delivery that fails since the other side is away is charged no receive, for so long: no provider was away longer.
AWAY_PATIENCE = timedelta(days=1)
AWAY_LONGEST_WAIT = timedelta(minutes=5)  # between its tries, where the other side is well but not for this one
# A worker that has not shown a sign of life for so long is killed and replaced by its supervisor.
WORKER_WATCHDOG = timedelta(seconds=60)
# Its first sign may take so long: it loads its code and asks for a connection, on a machine that may do much else.
WORKER_START_LIMIT = timedelta(seconds=60)
# A message type this worker has no handler for (old code, new message) is put back for so long, uncharged.
UNKNOWN_HANDLER_DELAY = timedelta(seconds=30)
# NOTIFYs of one process are at least this far apart; each takes a lock that all commits share, and wakes every worker.
# In a stream, where commits are less than twice that apart, each pause is twice the one before, up to the longest: who
# finds work in it looks again by itself.
NOTIFY_INTERVAL = timedelta(milliseconds=5)
NOTIFY_INTERVAL_LONGEST = timedelta(milliseconds=40)
# Claims of a subscription with effects outside are at least this far apart in one lane, unless the last one was full:
# what comes in a stream is claimed and settled by the dozen, and what comes alone is claimed at once. Less than
# providers take to answer.
EXTERNAL_CLAIM_INTERVAL = timedelta(milliseconds=40)
# What is answered within so long of its claim is settled together.
EXTERNAL_SETTLE_TOGETHER = timedelta(milliseconds=5)
QUEUE_ROUTES = "winecellar.routes"

# --- Dead letters (see docs/runbooks/dead-letters.md) ----------------------------------------------------------

CASE_FILES = "winecellar.case_files"
# Letters per second that a redrive sends unless told otherwise: an hour of trouble goes in minutes, beside live work.
REDRIVE_RATE = 50
REDRIVE_MOST_RATE = 1_000  # more than the handlers take while prices arrive at full rate
# The first so many go alone and are waited for: what is not mended shows before the rest has taken a lap.
REDRIVE_SAMPLE = 10
# It stops by itself when more than this share fails again.
REDRIVE_STOP_SHARE = 0.1
REDRIVE_TURN = timedelta(seconds=5)  # a worker gives a redrive back after so long, so that it can stop
# Letters in one transaction of a decision, and in one redrive: locking and listing them stays within a request's
# patience. What is about more is done in portions of so many.
DECISION_MOST = 50_000
# Siblings of a letter: what came from the same origin within this window around it.
DEAD_LETTER_WINDOW = timedelta(minutes=20)
DEAD_LETTER_PAGE = 50  # letters on a page of the list
# Rows that one page looks at for filters no index serves; the next page goes on where it stopped.
DEAD_LETTER_LOOK = 5_000

# --- Journeys (see docs/journeys.md) ---------------------------------------------------------------------------

JOURNEYS = "winecellar.journeys"
JOURNEY_SHOWN = 50  # follow-ups, decisions and found events on one page; how many more there are is counted up to ...
JOURNEY_COUNTED = 1_000
# Deliveries of one partition that are looked at for a message that waits, which no index finds: one would cost every
# publisher. Further back it is only said that it waits.
JOURNEY_LOOK = 10_000
# The newest messages that are looked through for an id of a request or of a merchant's, which no index finds either.
JOURNEY_SEARCH = 50_000

# --- The schedule and its alarms ------------------------------------------------------------------------------

SCHEDULE = "winecellar.schedule"
# The product's own judges of what is wrong, beside those of jobs/alarms/rules.py.
ALARM_JUDGES = "winecellar.alarm_judges"
# How often a scheduler looks for what was asked for by hand and for locks that ran out; slots it meets exactly.
SCHEDULER_POLL_INTERVAL = timedelta(seconds=5)
# Runs that one scheduler process has under way at once, each a process of its own.
SCHEDULER_RUNS_AT_ONCE = env.int("SCHEDULER_RUNS_AT_ONCE", default=3)
# A slot noticed later than this was missed: longer than a restart takes, shorter than anybody should wait in doubt.
SCHEDULE_LATE_AFTER = timedelta(minutes=5)
# Before attempt n + 1 at a slot a random wait in [0, base * 2**(n-1)]: 1, 2, 4 min. Nobody waits for a nightly job.
SCHEDULE_RETRY_BASE = timedelta(minutes=1)
# Runs and closed incidents are kept for a year and a month, to compare with the same season.
SCHEDULE_RETENTION = timedelta(days=400)
# How often the watchman looks at every alarm.
WATCHMAN_INTERVAL = timedelta(seconds=15)
# A scheduler or watchman silent for so long is missed: many looks, and longer than a deployment's restart.
PROCESS_SILENT_AFTER = timedelta(minutes=3)
# A run is slow at this many times its usual time (the median of the last runs), but never below the floor.
SLOW_RUN_FACTOR = 3
SLOW_RUN_FLOOR = timedelta(minutes=1)
# A condition must be over for so long before its incident closes, so that one which flaps is one incident.
INCIDENT_CLOSES_AFTER = timedelta(minutes=5)
# Who gets a mail when an incident opens; nobody: it is logged and shown in the admin.
ALARM_MAIL_TO = env.list("ALARM_MAIL_TO", default=[])
# An outside monitor in the manner of healthchecks.io: <url>/<job name>, with /start before and /fail after a failure.
# It notices what we cannot say ourselves: that everything is down.
MONITOR_PING_URL = env.str("MONITOR_PING_URL", default="").rstrip("/")
MONITOR_WATCHMAN_INTERVAL = timedelta(minutes=1)  # how often the watchman pings, while all its looks succeed
MONITOR_TIMEOUT = timedelta(seconds=5)  # a ping that takes longer is given up; nothing depends on it

# --- Traces (see docs/tracing.md) ------------------------------------------------------------------------------

# otlp: spans are made and sent by the OpenTelemetry SDK, which must be installed, and reads its own OTEL_… variables.
# none: only what a request's sender said of its trace is carried on.
TRACES_EXPORTER = env.str("OTEL_TRACES_EXPORTER", default="none")
TRACES_SERVICE_NAME = env.str("OTEL_SERVICE_NAME", default="winecellar")

# --- Gauges, and the alarms made from them (see docs/decisions/0029) --------------------------------------------

# A worker tells what it has done this often, with its sign of life: what a crash leaves uncounted is no more.
GAUGE_FLUSH_INTERVAL = timedelta(seconds=1)
# Who is cut off while it tells its counts, or counts the queue, holds up others' no longer than this.
GAUGE_SILENT_LIMIT = timedelta(seconds=5)
# The watchman counts the queue with each look, but so that counting takes no more than this share of the time.
CENSUS_SHARE = 0.02
# Arrivals are counted from the log, and wait for a transaction that is open no longer than this.
GAUGE_LATE_COMMIT = timedelta(minutes=1)
GAUGE_RETENTION = timedelta(hours=48)  # today, and the same hours of yesterday to compare with
GAUGE_RATE_OVER = timedelta(minutes=5)  # rates are of the last so long: the promise's own length
GAUGE_WINDOW_OVER = timedelta(minutes=15)  # and the time from publication to effect: enough for a hundredth to be one
STATUS_WATCH_INTERVAL = timedelta(seconds=5)  # between two screens of `manage.py status --watch`
GAUGE_PAGE_HOURS = 3  # that the operators' page draws
# A scrape shows this as its bearer token. Without one /metrics is open to this machine alone, or to nobody.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
METRICS_FROM_LOOPBACK = env.bool("METRICS_FROM_LOOPBACK", default=not PRODUCTION)
# Shares of ALERT_PROMISE: half of it gone is a warning while there is time, four fifths wants somebody now.
ALARM_WARN_SHARE = 0.5
ALARM_PAGE_SHARE = 0.8
ALARM_OPENS_AFTER = timedelta(minutes=2)  # for how long a trend must hold: two looks at rates over five minutes
# A type that came regularly and has not for so long, nor for so many times its longest pause of a day, has stopped.
ARRIVALS_SILENT_AFTER = timedelta(minutes=15)
ARRIVALS_SILENT_FACTOR = 3
SUSPENDED_TOO_LONG = timedelta(hours=1)  # a pause for a deployment or a repair is over by then, or was forgotten
# A snapshot held for longer keeps VACUUM from the queue's dead rows; nothing of ours lives half as long.
HORIZON_HELD_AFTER = timedelta(minutes=10)
DEAD_TUPLES_MOST = 1_000_000  # of a hot table, and more than live ones: some 300 MB that each look has to pass
NOTIFY_QUEUE_MOST = 0.25  # of its 8 GB; at all of it no transaction that notifies can commit
CONNECTIONS_MOST = 0.85  # of max_connections: the rest is for deployments and for whoever looks into it
# The tables whose dead rows are watched: what is written with every price.
HOT_TABLES = ["jobs_delivery", "processed_messages", "pricing_offer", "pricing_wine", "alerts_alert"]
# Where incidents are posted when they open, are acknowledged and close; signed as Standard Webhooks (whsec_…).
ALARM_WEBHOOK_URL = env.str("ALARM_WEBHOOK_URL", default="")
ALARM_WEBHOOK_SECRET = env.str("ALARM_WEBHOOK_SECRET", default="")

# --- Feeds ----------------------------------------------------------------------------------------------------

FEED_MAX_BODY_BYTES = 1_000_000  # a thousand observations of 200 bytes five times over
FEED_MAX_BATCH = 1_000
FEED_MAX_DEPTH = 16  # our contract nests three deep; a parser bomb nests a hundred thousand
FEED_CLOCK_TOLERANCE = timedelta(minutes=5)  # how far ahead of ours a merchant's clock may run
# How old a signature may be, or how far ahead: an older request may be somebody's recording.
FEED_SIGNATURE_TOLERANCE = timedelta(minutes=5)
FEED_EARLIEST = 2000  # years before are typing errors
# More than this factor up or down is held for a person: cents taken as units is a factor of a hundred.
FEED_HOLD_FACTOR = Decimal(10)
FEED_LOCK_TIMEOUT = timedelta(seconds=2)  # how long a request waits for its twin before it answers 503
FEED_REQUESTS_PER_MINUTE = env.int("FEED_REQUESTS_PER_MINUTE", default=6_000)  # per merchant
FEED_MAX_LIVE_KEYS = 2  # keys, and signing secrets: the old one and its successor, while a merchant rotates
FEED_ANSWER_RETENTION = timedelta(days=14)  # stored answers of idempotent requests; merchants retry for hours
# A price in other money is converted by the rate of its day, or of the last day before that had one: the longest run
# of days without, Christmas to New Year or Easter with its weekend, is four.
FEED_RATE_MAX_AGE = timedelta(days=7)
# What is kept of a body, to read it again with a mended adapter: a thousand observations of 200 bytes, and some more.
FEED_RAW_BODY_BYTES = 250_000
FEED_RAW_BODY_RETENTION = timedelta(days=14)  # as long as a dead letter that was made of it

# --- Catalogue files (see docs/catalogues.md) ------------------------------------------------------------------

CATALOGUE_MAX_BYTES = 200_000_000  # as it is sent; a million rows of twelve columns, packed with gzip, are a quarter
CATALOGUE_MAX_TEXT_BYTES = 2_000_000_000  # unpacked: as many products at a thousand bytes each as the next allows
CATALOGUE_MAX_ROWS = 2_000_000  # no wine merchant lists as many; their ids are what a reader must hold in memory
CATALOGUE_MAX_INFLATION = 200  # times its packed size: price lists reach 30, and gzip's bombs a thousand
CATALOGUE_PIECE_BYTES = 1 << 20  # a row of the table that keeps a file; read and written one at a time
# Rows that are compared in one transaction: their wines are locked for some hundredths of a second, and no feed waits.
CATALOGUE_WINDOW = 5_000
CATALOGUE_CHUNK = 1_000  # rows that are recorded in one transaction, as many as a feed may send at once
# A worker gives a file back after so long, so that it can stop, and no merchant's file keeps the others waiting.
CATALOGUE_TURN = timedelta(seconds=5)
# Reading a file into its stage is one piece of work; the largest takes half of this on a slow host.
CATALOGUE_TIME_LIMIT = timedelta(minutes=10)
# Who works on a file renews this with every transaction; a crash delays the file by as much.
CATALOGUE_LEASE = timedelta(seconds=60)
CATALOGUE_BUSY_DELAY = timedelta(seconds=5)  # how long a file waits that finds another of its merchant being taken
# How long a file waits for one that came before it. Longer than several of the largest take; one whose command has
# become a dead letter, which alarms within minutes, holds up the others no longer.
CATALOGUE_ORDER_PATIENCE = timedelta(hours=1)
CATALOGUE_REMARKS = 1_000  # rows of one kind that a report names; the rest is counted
CATALOGUE_RETENTION = timedelta(days=14)  # the files' bytes: long enough to look at one that went wrong
CATALOGUE_REPORT_RETENTION = timedelta(days=400)  # the reports, as long as the messages that the files made
CATALOGUE_ABANDONED_AFTER = timedelta(days=1)  # nobody sends a file for longer

# --- Alerts ---------------------------------------------------------------------------------------------------

ALERTS_PER_USER = 5_000
# A price that has fallen so far below the one that was mailed is news again, though the alert has been met all along.
ALERT_FURTHER_FALL = Decimal("0.05")
# The same news is told once in so long: merchants who change a price back and forth do so within a working day.
ALERT_COOLDOWN = timedelta(minutes=env.int("ALERT_COOLDOWN_MINUTES", default=360))
# A deleted alert can be brought back for so long, with its log; then it is gone.
ALERT_UNDO = timedelta(days=7)
# Alerts whose snooze is over that are asked about in one transaction; each locks its wine's row for as long.
ALERT_WAKE_CHUNK = 500
MAIL_BATCH = 40
MAIL_AT_ONCE = 8  # sends in flight per worker process
MAIL_TIMEOUT = timedelta(seconds=10)  # a whole exchange; the provider's brownouts hang for eight seconds, then fail
MAIL_SUBJECT_LONGEST = 160  # letters: what phones show of it is less, and encoded it stays far below 998 bytes a line
# How often somebody may say that an address works again which had sent mail back: each time we try costs reputation.
ADDRESS_WORKS_EVERY = timedelta(days=1)

# --- Other ways of being told (see docs/channels.md) -----------------------------------------------------------

CHANNELS_PER_USER = 5
CHANNEL_AT_ONCE = 8  # posts in flight per worker process
CHANNEL_TIMEOUT = timedelta(seconds=10)  # from connecting to the answer's headers, whatever drips between
# How long after the first, the second … try that a receiver did not take the next one follows: a restart, a deploy, an
# evening. After the last of them the notification is given up there; its mail went on its own.
CHANNEL_RETRY_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 600, 3_600, 21_600))
CHANNEL_LONGEST_WAIT = timedelta(hours=6)  # a receiver's Retry-After counts up to this
CHANNEL_GIVE_UPS = 3  # notifications given up in a row, after which the channel is switched off
CHANNEL_SECRET_OVERLAP = timedelta(days=1)  # how long an old secret signs beside its successor
ATOM_ENTRIES = 50
ATOM_RATES = "120/h/key,600/h/ip"  # readers ask every few minutes at most; several of one person's, at one address
# People whose week is reckoned in one transaction: half a second, so that a lost lock costs little.
DIGEST_CHUNK = env.int("DIGEST_CHUNK", default=1_000)
DIGEST_PROMISE = timedelta(hours=4)  # “on Monday morning”: by noon, at eight sends at once to everybody there is
DIGEST_LINES = 5  # of each table of a digest: what is worth reading on a Monday

# --- Cellars --------------------------------------------------------------------------------------------------

# An offer that its merchant has not confirmed for so long is no longer what somebody asks, but what somebody asked.
VALUATION_OFFER_FRESH = timedelta(days=30)
# How long a night's lines and prices are kept: “since yesterday” needs two nights, a look back at an odd one a week.
# Totals are kept for ever.
VALUATION_DETAIL_RETENTION = timedelta(days=8)
# Cellars valued in one transaction: half a second, so that a lost lock costs little and nobody waits for its rows.
VALUATION_CHUNK = env.int("VALUATION_CHUNK", default=3_000)
CELLAR_MAX_FILE_BYTES = 20_000_000  # a hundred thousand bottles of CellarTracker's longest rows, twice over
CELLAR_MAX_BOTTLES = 100_000  # of one person: ten times the largest private cellar that was ever auctioned
# More in one row is a column read wrongly (a price taken for a quantity), and so are files whose rows hold ...
CELLAR_MAX_PER_ROW = 1_200
# ... more than five cases each on average: 269 rows once became 450,381 bottles.
CELLAR_MAX_MEAN_PER_ROW = 60
CELLAR_PREVIEW_RETENTION = timedelta(days=1)  # how long a file that nobody confirmed is kept

# --- Purchases (see docs/purchases.md) --------------------------------------------------------------------------

# How long bottles are kept for somebody whose card is being charged: banks answer in seconds, a provider's bad quarter
# of an hour is rare, and others want the bottles too.
RESERVATION_TIME = timedelta(minutes=15)
PURCHASE_MOST_BOTTLES = 12  # a case; more is a conversation with the merchant
PURCHASES_AT_ONCE = 3  # of one person that are not paid yet, so that nobody reserves a shop empty
PAYMENT_TIMEOUT = timedelta(seconds=10)  # one exchange with the provider; up to four make one effect
PAYMENT_AT_ONCE = 16  # effects under way per worker process: a charge takes a second at most banks
PAYMENT_ASK_AGAIN = timedelta(seconds=30)  # after “pending”; the provider's report is mostly earlier
# What the provider cannot tell for so long is looked into by a person. No longer than the provider keeps our keys.
PAYMENT_PATIENCE = timedelta(days=1)
PAYMENT_REPORT_TOLERANCE = timedelta(minutes=5)  # how old a report's signature may be: an older one is a recording
PAYMENT_REPORT_RETENTION = timedelta(days=40)  # Stripe repeats a report for three days, and by hand for thirty
# A purchase under way for so long is an incident: its end takes seconds, or else its reservation's time.
PURCHASE_SLOW_AFTER = timedelta(hours=1)

# --- Accounts -------------------------------------------------------------------------------------------------

# How often, by whom (ip, key: the address typed, user), over how long. A household or an office shares one address.
ACCOUNT_RATE_LIMITS = {
    "signup": "20/h/ip",
    "login": "30/m/ip",
    # The lockout: guessing at one account, or from one place at many. A new password through the mail ends it.
    "login_failed": "10/m/ip,5/15m/key",
    # Each sends a mail to whatever address was typed, so it must not be a way of filling somebody's mailbox.
    "reset_password": "20/h/ip,3/h/key",
    "confirm_email": "1/3m/key",
    "reset_password_from_key": "20/m/ip",
    "change_password": "5/m/user",
    "manage_email": "10/m/user",
    "reauthenticate": "10/m/user",
}
ACCOUNT_EMAIL_CONFIRMATION_EXPIRE_DAYS = 3  # over a weekend
PASSWORD_RESET_TIMEOUT = 3_600  # seconds: whoever asks is waiting for it
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds for which a password typed again counts, before what cannot be undone
MFA_TOTP_TOLERANCE = 1  # codes before and after the present one: phones' clocks are up to half a minute off
# Off in the demo only, where everybody can read the password; `check --deploy` refuses it.
STAFF_NEED_SECOND_FACTOR = env.bool("STAFF_NEED_SECOND_FACTOR", default=True)
# How many proxies of ours a request passes. Only as many entries of X-Forwarded-For are believed.
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("TRUSTED_PROXY_COUNT", default=0)

# --- Replicas (see docs/replicas.md) ---------------------------------------------------------------------------

# A replica further behind is not read from: others' changes, and one's own on another device, are at most so old.
REPLICA_MAX_LAG = timedelta(seconds=env.int("REPLICA_MAX_LAG_SECONDS", default=30))
# How often a web process notes where the primary is, to know later how old a replica is. A query of 0.1 ms each.
REPLICA_MARK_INTERVAL = timedelta(seconds=1)
# A replica that does not say in this time where it is, is not asked for the page: a busy one answers in 10 ms.
REPLICA_ANSWER_TIME = timedelta(seconds=0.5)
# A replica that failed is tried again after so long, by one page, which may wait for the connection.
REPLICA_RETRY_AFTER = timedelta(seconds=10)
REPLICA_CONNECTION = {
    "connect_timeout": 2,  # seconds, the least that libpq knows
    # A network that swallows everything in the middle of a page: noticed within about six seconds, then the primary.
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,  # milliseconds
}
# Operators decide by what they read, so they read what is so.
REPLICA_NEVER_FOR = ("/admin/",)
# Programs, which keep no cookies and look at no pages: nothing is read elsewhere, and nothing remembered.
REPLICA_NO_VISITORS = (
    "/feeds/",
    "/mail/reports/",
    "/payments/reports",
    "/unsubscribe/",
    "/metrics",
    "/healthz",
    "/readyz",
)

# --- Django ---------------------------------------------------------------------------------------------------

SECRET_KEY = env.str("SECRET_KEY", default="" if PRODUCTION else "development-only-" + "0123456789abcdef" * 3)
# The SECRET_KEYs before, while one is replaced: what they sealed or signed can still be read.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[] if PRODUCTION else ["localhost", "127.0.0.1", "[::1]"])
SITE_URL = env.str("SITE_URL", default="" if PRODUCTION else "http://127.0.0.1:8000").rstrip("/")
CSRF_TRUSTED_ORIGINS = [SITE_URL] if SITE_URL else []

INSTALLED_APPS = [
    "winecellar.accounts.admin_config.OperatorAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth.account",
    "allauth.mfa",
    "anymail",
    "jobs",
    "pricing",
    "alerts",
    "winecellar.accounts",
    "winecellar.cellars",
    "winecellar.purchases",
    "winecellar.deployment",
    "winecellar.demo",
]

MIDDLEWARE = [
    "winecellar.machines.MachinesMiddleware",  # /healthz, /readyz, /metrics pass by everything else
    "winecellar.middleware.RequestIdMiddleware",
    "winecellar.middleware.DatabaseAwayMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "winecellar.middleware.ContentSecurityPolicyMiddleware",
    "winecellar.middleware.PrivatePagesMiddleware",
    "winecellar.middleware.FeedsMiddleware",  # what follows is for people
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "winecellar.accounts.middleware.ErasedMeanwhileMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "winecellar.replicas.middleware.SeeYourOwnWriteMiddleware",
]

ROOT_URLCONF = "winecellar.urls"
WSGI_APPLICATION = "winecellar.wsgi.application"
# A POST without its slash would lose its body in a redirect; here it is a plain 404.
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "winecellar" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "winecellar.context.site",
                "alerts.context.unread",
            ],
            "builtins": ["winecellar.templatetags.cellar"],
        },
    },
]

DATABASES = {"default": database_url.read(env.str("DATABASE_URL", default="") or embedded.default().url())}
DATABASES["default"].update(
    {
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": None,  # connecting costs more than most requests
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": True,  # so that PgBouncer in transaction mode works
    }
)
# A server whose host is gone is noticed within 25 seconds, before the leases end; else a thread that waits for its
# answer would wait for as long as the kernel likes, a quarter of an hour or for ever. A Unix socket needs none of it.
DATABASE_CONNECTION = {
    "connect_timeout": 5,  # seconds for each of the servers that the URL names
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}
# The same from the other side: each session tells its server. Else what a host that is gone had locked stays locked for
# two hours: a transaction that idles has limits of its own, but none that waits for the rest of a round trip.
DATABASE_SESSION = {
    "tcp_keepalives_idle": DATABASE_CONNECTION["keepalives_idle"],
    "tcp_keepalives_interval": DATABASE_CONNECTION["keepalives_interval"],
    "tcp_keepalives_count": DATABASE_CONNECTION["keepalives_count"],
    "tcp_user_timeout": DATABASE_CONNECTION["tcp_user_timeout"],
}
DATABASES["default"]["OPTIONS"] = {**DATABASE_CONNECTION, **DATABASES["default"].get("OPTIONS", {})}
# The statements of jobs.database.run are prepared from their fifth run on, which halves what a price costs the server.
# A pooler that does not keep prepared statements (PgBouncer with max_prepared_statements 0) must have it false.
PREPARED_STATEMENTS = env.bool("PREPARED_STATEMENTS", default=True)
DATABASES["default"]["OPTIONS"].setdefault("prepare_threshold", 5 if PREPARED_STATEMENTS else None)
# Streaming replicas, which pages may be read from (see docs/replicas.md). Each URL is one server, with no pool that
# changes servers behind it.
REPLICAS = {
    f"replica{n}": env.db_url_config(url) for n, url in enumerate(env.list("DATABASE_REPLICA_URLS", default=[]))
}
for _replica in REPLICAS.values():
    _replica.update({"CONN_MAX_AGE": None, "DISABLE_SERVER_SIDE_CURSORS": True, "TEST": {"MIRROR": "default"}})
    _replica["OPTIONS"] = {**REPLICA_CONNECTION, **_replica.get("OPTIONS", {})}
DATABASES.update(REPLICAS)
DATABASE_ROUTERS = ["winecellar.replicas.router.ReplicaRouter"] if REPLICAS else []

# The database's roles are winecellar_web and so on (see docs/security.md): a prefix for each deployment on a server.
DATABASE_ROLES = env.str("DATABASE_ROLES", default="winecellar")
# A statement for a page or a feed that takes longer is ended by the server: gunicorn gives a request thirty seconds.
WEB_STATEMENT_LIMIT = timedelta(seconds=25)
# How long a migration waits for a table's lock. Everybody who comes after it waits behind it for as long ...
MIGRATION_LOCK_LIMIT = timedelta(seconds=2)
MIGRATION_LOCK_TRIES = 10  # ... and then have their turn, before it tries again.
# A host whose clock is further from the database's is named by `manage.py doctor`. Signatures allow for minutes.
DOCTOR_CLOCK_DIFFERENCE = timedelta(seconds=2)

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "alerts"
LOGOUT_REDIRECT_URL = "home"
SESSION_ENGINE = "winecellar.accounts.sessions"
# What counts attempts must be one for all processes and hosts, and we have Postgres only.
CACHES = {"default": {"BACKEND": "winecellar.accounts.cache.SharedCache"}}

# allauth: people are known by their address alone. The pages' names are in accounts/urls.py, the words in accounts/.
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ACCOUNT_ADAPTER = "winecellar.accounts.adapter.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_PREVENT_ENUMERATION = True
# Asked for when signing up, so that a known address and a new one get the same answer; see accounts/adapter.py.
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True  # in the browser that signed up, and nowhere else
ACCOUNT_CHANGE_EMAIL = True  # one address, replaced when the new one is confirmed
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_METHODS = {"password", "mfa"}
ACCOUNT_FORMS = {
    "login": "winecellar.accounts.forms.SignInForm",
    "signup": "winecellar.accounts.forms.SignUpForm",
    "add_email": "winecellar.accounts.forms.AddressForm",
    "change_password": "winecellar.accounts.forms.PasswordForm",
    "reset_password": "winecellar.accounts.forms.ForgottenForm",
    "reset_password_from_key": "winecellar.accounts.forms.NewPasswordForm",
    "reauthenticate": "winecellar.accounts.forms.ItIsYouForm",
}
MFA_ADAPTER = "winecellar.accounts.second_factor.SecondFactorAdapter"
MFA_TOTP_ISSUER = "Winecellar"
# Allauth would not let anybody with a second factor change their address. Our form asks for a confirmed one instead.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "authenticate": "winecellar.accounts.forms.CodeForm",
    "reauthenticate": "winecellar.accounts.forms.ItIsYouByCodeForm",
    "activate_totp": "winecellar.accounts.forms.AppForm",
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles" if PRODUCTION else None  # development serves from the sources
STATICFILES_DIRS = [BASE_DIR / "winecellar" / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not PRODUCTION

MAIL_FROM = env.str("MAIL_FROM", default="Winecellar <alerts@winecellar.example>")
DEFAULT_FROM_EMAIL = MAIL_FROM
SERVER_EMAIL = MAIL_FROM
# A mail server or a provider's API: smtp://user:password@host:587/?tls=true, resend://key@ … (mail_provider.py).
EMAIL_URL = env.str("EMAIL_URL", default="" if PRODUCTION else "consolemail://")
_mail = mail_provider.read(EMAIL_URL, timeout=MAIL_TIMEOUT.total_seconds())
EMAIL_BACKEND, ANYMAIL, EMAIL_TIMEOUT = _mail["EMAIL_BACKEND"], _mail["ANYMAIL"], _mail["EMAIL_TIMEOUT"]
EMAIL_HOST, EMAIL_PORT = _mail.get("EMAIL_HOST", "localhost"), _mail.get("EMAIL_PORT", 25)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.get("EMAIL_HOST_USER", ""), _mail.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.get("EMAIL_USE_TLS", False), _mail.get("EMAIL_USE_SSL", False)
# What the provider's reports of bounces and complaints are known by. Resend: the whsec_… that it shows; Postmark:
# user:password, as in the webhook's address. Without it no report is believed.
MAIL_WEBHOOK_SECRET = env.str("MAIL_WEBHOOK_SECRET", default="")

# Who takes people's payments: stripe://sk_live_…@ (payment_provider.py). Empty: nothing is sold.
PAYMENTS = payment_provider.read(env.str("PAYMENTS_URL", default=""))
# What the provider's reports of payments are signed with: the whsec_… that it shows. Without it none is believed.
PAYMENTS_WEBHOOK_SECRET = env.str("PAYMENTS_WEBHOOK_SECRET", default="")

# A feed's own limit is checked by its view, which also answers in the feed's error shape.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * FEED_MAX_BODY_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000

# Whom to tell about a hole: an address or a page. Without it there is no /.well-known/security.txt.
SECURITY_CONTACT = env.str("SECURITY_CONTACT", default="")
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
if PRODUCTION:
    SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
    SECURE_REDIRECT_EXEMPT = [r"^feeds/"]  # a redirect would lose the body; the feed refuses plain HTTP itself
    SECURE_PROXY_SSL_HEADER = (
        ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_TLS_PROXY", default=False) else None
    )
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    # So named, a browser takes them over TLS alone, for this host alone: no neighbour can plant one.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"

LOGGING_CONFIG = None  # structlog renders our lines and the libraries' alike
configure_logging(json=PRODUCTION or env.bool("LOG_JSON", default=False), level=env.str("LOG_LEVEL", default="INFO"))
