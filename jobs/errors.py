"""How a handler says what kind of failure it met. Anything else is unclassified, and bounded all the same."""


class PermanentError(Exception):
    """The same input will fail every time: a schema violation, a reference to nothing. Dead-lettered at once."""


class TransientError(Exception):
    """The same input may succeed later. `retry_after` is the floor in seconds when the other side named one."""

    def __init__(self, reason: str, *, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class AwayError(TransientError):
    """The other side is unwell, or what we know it by is not accepted: no fault of this message, so no receive is
    charged for it, for as long as settings.AWAY_PATIENCE. Counts for the subscription's breaker, unless it is only
    this message's own destination that is away (`whole` false)."""

    def __init__(self, reason: str, *, retry_after: float = 0.0, whole: bool = True) -> None:
        super().__init__(reason, retry_after=retry_after)
        self.whole = whole


class RefusedError(PermanentError):
    """The other side will never take anything for this recipient."""


class LeaseLostError(Exception):
    """Some deliveries of this batch are no longer ours; nothing of it may be committed."""


class LockLostError(Exception):
    """A scheduled run is no longer the owner of its job's lock; it may commit nothing more."""


class StoppedError(Exception):
    """The process was told to stop; a scheduled run ends between two of its chunks and goes back, uncharged."""


class TimeLimitError(Exception):
    """A scheduled run has taken longer than its job allows."""


class NotInTransactionError(Exception):
    """A message was to be published outside the transaction that makes it true."""
