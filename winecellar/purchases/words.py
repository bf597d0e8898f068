"""How a purchase stands, in words: for its buyer, and for operators. Pure."""

from __future__ import annotations

from winecellar.purchases.rules import Event, State

# For lists: a few words.
STATES = {
    State.CHARGING: "Payment under way",
    State.ASKING: "Waiting for the payment’s answer",
    State.LAPSED: "Payment being cleared up",
    State.CALLING_OFF: "Being called off",
    State.NOTIFYING: "Bought",
    State.REFUNDING: "Refund under way",
    State.CHARGE_UNCLEAR: "Somebody is looking into it",
    State.REFUND_UNCLEAR: "Somebody is looking into it",
    State.COMPLETED: "Bought",
    State.RELEASED: "Not bought, not charged",
    State.REFUNDED: "Refunded",
    State.RESOLVED: "Settled by us",
}
# For its page: what is true now, and what happens next.
SAYS = {
    State.CHARGING: "We are charging your card. It takes some seconds; this page shows the end of it.",
    State.ASKING: "The payment provider has not answered yet. We ask it again, by the same number, so you are charged "
    "once at most.",
    State.LAPSED: "Your reservation has run out, and we do not know yet whether your card was charged. If it was and "
    "the bottles are still there, they are yours; else you get all of it back. You need not do anything.",
    State.CALLING_OFF: "It is being called off. If your card was charged, you get all of it back.",
    State.NOTIFYING: "The bottles are yours and paid. The merchant is being told, and a mail is on its way to you.",
    State.REFUNDING: "Your card was charged, and the bottles were gone by then. We are giving all of it back.",
    State.CHARGE_UNCLEAR: "The payment provider has not told us for a day whether your card was charged. One of us "
    "finds out. If it was, you get all of it back.",
    State.REFUND_UNCLEAR: "Your refund did not go through by itself. One of us sees to it.",
    State.COMPLETED: "The bottles are yours and paid. The merchant has been told and sends them.",
    State.RELEASED: "Nothing was bought, and your card was not charged.",
    State.REFUNDED: "Nothing was bought. Your card was charged and all of it went back.",
    State.RESOLVED: "One of us has settled it by hand. Answer any of our mails if something is open.",
}
CHIPS = {
    **dict.fromkeys(State, "pending"),
    State.NOTIFYING: "fired",
    State.COMPLETED: "fired",
    State.RELEASED: "",
    State.REFUNDED: "",
    State.RESOLVED: "",
}
# Each event as its line in the log.
EVENTS = {
    Event.CHARGED: "Your card was charged",
    Event.DECLINED: "The charge was declined",
    Event.CANCELLED: "The charge was called off",
    Event.PENDING: "The provider is still at it",
    Event.NO_ANSWER: "No answer came",
    Event.REFUND_MADE: "The money went back",
    Event.REFUND_FAILED: "The refund did not go through",
    Event.NOTIFIED: "Everybody was told",
    Event.TIME_UP: "The reservation ran out",
    Event.PATIENCE_OVER: "Handed to one of us",
    Event.RESUME: "One of us had it go on",
    Event.COMPENSATE: "One of us had it undone",
    Event.RESOLVE: "One of us settled it",
}
