"""Reads the history of a run beside what is in the database afterwards, and says what was broken. Pure.

Each check is a function of the story (what clients were told) and the facts (what is there); it returns a sentence for
each violation. None says “probably”: an outcome that nobody knows is held to all or nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos import sales
from tests.chaos.sales import SalesFacts, SalesStory

MAX_RECEIVES = 5
# A mail that the provider is being handed while its person is forgotten may still arrive: the transport's patience.
UNDER_WAY_SECONDS = 10.0
# What may befall any message while things break, and is charged to it.
OF_THE_CHAOS = {"LeaseExpired", "OperationalError", "InterfaceError", "InternalError"}
SILENT = "WorkerCrashError"  # buried since its worker never said what became of it
# How each kind of poison fails, and as what it is buried.
NATURE: dict[str, tuple[set[str], str]] = {
    "permanent": ({"PermanentError"}, "permanent"),
    "mendable": ({"PermanentError"}, "permanent"),
    "malformed": ({"PermanentError"}, "permanent"),
    "transient": ({"TransientError"}, "exhausted"),
    "unknown": ({"ValueError"}, "exhausted"),
    "recursion": ({"RecursionError"}, "worker_crash"),
    "memory": ({"MemoryError"}, "worker_crash"),
    "sys.exit": ({"SystemExit"}, "worker_crash"),
    "exit": (set(), "worker_crash"),
    "segfault": (set(), "worker_crash"),
    "loop": (set(), "worker_crash"),
}
OWN = "chaos-strict"
REFUSING = {"malformed": ("price-history", "alert-matching", "analytics-rollup")}  # of the product's own


@dataclass(frozen=True)
class Letter:
    """A dead letter. `failures`: (receive, class of error) of each receive."""

    id: int
    subscription: str
    event_id: str
    cause: str
    error_class: str
    receive_count: int
    failures: tuple[tuple[int, str], ...] = ()
    outcome: str = ""


@dataclass(frozen=True)
class Logged:
    """A message of the log."""

    message_id: int
    type: str
    key: str


@dataclass(frozen=True)
class Effect:
    """One effect of one message, in the order in which they came to be."""

    event_id: str
    key: str
    seq: int | None = None


@dataclass(frozen=True)
class Mail:
    """What the provider took."""

    key: str
    to: str
    at: float


@dataclass
class Facts:
    """What is there at the end. `mail_keys`: of each notification and purchase its mails' keys, and their state."""

    log: Mapping[str, Logged] = field(default_factory=dict)
    types: Mapping[str, set[str]] = field(default_factory=dict)  # by subscription
    ledger: Mapping[str, set[str]] = field(default_factory=dict)  # by subscription
    effects: Mapping[str, Sequence[Effect]] = field(default_factory=dict)  # by subscription
    letters: Sequence[Letter] = ()
    mail_keys: Mapping[str, str] = field(default_factory=dict)
    mails: Sequence[Mail] = ()
    audit: Sequence[tuple[str, tuple[int, ...]]] = ()  # by whom, about which letters
    offers: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (merchant, wine) → price
    alerts: set[int] = field(default_factory=set)
    people: set[int] = field(default_factory=set)
    left: Mapping[str, int] = field(default_factory=dict)  # deliveries that still wait, by subscription
    sales: SalesFacts = field(default_factory=SalesFacts)


@dataclass
class Story:
    """What the clients did and were told."""

    acknowledged: set[str] = field(default_factory=set)
    uncertain: list[list[str]] = field(default_factory=list)  # transactions of which nobody knows whether they were
    poison: dict[str, str] = field(default_factory=dict)  # event id → kind
    prices: dict[tuple[str, str], str] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)  # merchants whose last request was never answered
    refused: list[str] = field(default_factory=list)
    redriven: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    erased: dict[str, float] = field(default_factory=dict)  # address → when it was acknowledged
    perhaps_erased: set[str] = field(default_factory=set)
    alerts: dict[int, int] = field(default_factory=dict)  # alert → person
    sales: SalesStory = field(default_factory=SalesStory)

    @classmethod
    def of(cls, history: Iterable[Mapping[str, Any]]) -> Story:
        story, open_ = cls(), {}
        for line in history:
            what, how, by, id_ = line["what"], line["is"], line["by"], line["id"]
            if how == "invoke":
                open_[what, id_] = line
            if what == "poison" and how == "invoke":
                story.poison[line["event_ids"][0]] = id_
            if what in {"publish", "poison"} and how in {"ok", "unknown"}:
                asked = open_.pop((what, id_), {})
                if how == "ok":
                    story.acknowledged.update(line["event_ids"])
                elif asked.get("event_ids"):
                    story.uncertain.append(asked["event_ids"])
            elif what == "prices":
                story._price(line, how, by, id_)
            elif what == "redrive" and how == "ok":
                story.redriven.append((by, tuple(line["letters"])))
            elif what == "erase":
                story._erase(line, how)
                story.sales.take(line)
            elif what == "create alert" and how == "ok" and "alert" in line:
                story.alerts[line["alert"]] = line["user"]
            else:
                story.sales.take(line)
        return story

    def _price(self, line: Mapping[str, Any], how: str, by: str, id_: str) -> None:
        if how == "invoke":
            self.unanswered.add(by)
        elif how == "ok":
            self.unanswered.discard(by)
            self.acknowledged.update(line["event_ids"])
            self.prices.update({(by, wine): price for wine, price in line["prices"].items()})
        elif how == "fail":
            self.refused.append(f"{by} {id_}: {line['status']} {line['said']}")

    def _erase(self, line: Mapping[str, Any], how: str) -> None:
        if how == "invoke":
            self.perhaps_erased.add(line["email"])
        elif how == "ok":
            self.erased[line["email"]] = line["at"]


def lost_at_the_handoff(story: Story, facts: Facts) -> list[str]:
    """I1: what was acknowledged is in the log."""
    return [f"{event_id} was acknowledged, and is not in the log" for event_id in story.acknowledged - facts.log.keys()]


def torn_transactions(story: Story, facts: Facts) -> list[str]:
    """I2, I4: a transaction whose end nobody knows is there as a whole, or not at all."""
    found = []
    for event_ids in story.uncertain:
        there = sum(event_id in facts.log for event_id in event_ids)
        if 0 < there < len(event_ids):
            found.append(f"{there} of the {len(event_ids)} messages published with {event_ids[0]} are there")
    return found


def lost_in_custody(story: Story, facts: Facts) -> list[str]:
    """I1: each message in the log was applied or buried by each of its subscriptions."""
    buried = defaultdict(set)
    for letter in facts.letters:
        buried[letter.subscription].add(letter.event_id)
    found = []
    for name, types in facts.types.items():
        settled = facts.ledger.get(name, set()) | buried[name]
        found += [
            f"{name}: {e} is neither applied nor buried"
            for e, m in facts.log.items()
            if m.type in types and e not in settled
        ]
    return found


def still_waiting(story: Story, facts: Facts) -> list[str]:
    """I8: once the faults ended, all work was done."""
    return [f"{name}: {count} deliveries still wait" for name, count in facts.left.items() if count]


def effects_apart_from_the_ledger(story: Story, facts: Facts) -> list[str]:
    """I4: an effect and its ledger row exist together."""
    found = []
    for name, effects in facts.effects.items():
        there, entered = {effect.event_id for effect in effects}, facts.ledger.get(name, set())
        found += [f"{name}: {event_id} is in the ledger and had no effect" for event_id in entered - there]
        found += [f"{name}: {event_id} had an effect and is not in the ledger" for event_id in there - entered]
    return found


def double_effects(story: Story, facts: Facts) -> list[str]:
    """I3: each effect once."""
    found = []
    for name, effects in facts.effects.items():
        counted = Counter(effect.event_id for effect in effects)
        found += [f"{name}: {event_id} took effect {count} times" for event_id, count in counted.items() if count > 1]
    return found


def inversions(story: Story, facts: Facts) -> list[str]:
    """I5: the effects of one key are in the order in which it was published; what was buried let its key go on."""
    buried = {letter.event_id for letter in facts.letters}
    found = []
    for name, effects in facts.effects.items():
        last: dict[str, tuple[int, str]] = {}
        for effect in effects:
            logged = facts.log.get(effect.event_id)
            if logged is None or effect.event_id in buried or (effect.seq is None and name == OWN):
                continue
            before = last.get(effect.key)
            if before and before[0] > logged.message_id:
                found.append(f"{name}: {effect.event_id} of {effect.key} took effect after {before[1]}, its successor")
            last[effect.key] = (logged.message_id, effect.event_id)
    return found


def published_out_of_order(story: Story, facts: Facts) -> list[str]:
    """I5: the producer's own numbers ascend with the log's, key by key."""
    numbered = [
        (facts.log[effect.event_id].message_id, effect)
        for effect in facts.effects.get(OWN, ())
        if effect.seq is not None and effect.event_id in facts.log
    ]
    found, last = [], {}
    for _, effect in sorted(numbered, key=lambda pair: pair[0]):
        assert effect.seq is not None
        if last.get(effect.key, 0) >= effect.seq:
            found.append(f"{effect.key}: number {effect.seq} was published after number {last[effect.key]}")
        last[effect.key] = effect.seq
    return found


def wrong_prices(story: Story, facts: Facts) -> list[str]:
    """I2: the offer is what its merchant's last acknowledged request said."""
    return [
        f"{merchant} was told that {wine} costs {price}; the offer says {facts.offers.get((merchant, wine), 'nothing')}"
        for (merchant, wine), price in story.prices.items()
        if merchant not in story.unanswered and facts.offers.get((merchant, wine)) != price
    ]


def wrongly_refused(story: Story, facts: Facts) -> list[str]:
    """I11, I12: a good request is taken, or told to come again; never refused, never a 500."""
    return story.refused


def mails_gone_wrong(story: Story, facts: Facts) -> list[str]:
    """I3: one mail for each notification, under its own key; what is called sent was taken."""
    counted = Counter(mail.key for mail in facts.mails)
    found = [f"the provider took {key} {count} times" for key, count in counted.items() if count > 1]
    found += [
        f"{key} is called sent, and the provider never took it"
        for key, state in facts.mail_keys.items()
        if state == "sent" and key not in counted
    ]
    found += [
        f"{key} was decided, and nothing became of it" for key, state in facts.mail_keys.items() if state == "queued"
    ]
    found += [
        f"a mail to {mail.to} belongs to no notification: {mail.key}"
        for mail in facts.mails
        if mail.key not in facts.mail_keys and mail.to not in story.perhaps_erased
    ]
    return found


def mails_to_the_forgotten(story: Story, facts: Facts) -> list[str]:
    """Who had themselves erased gets no mail, but what was being handed over at that moment."""
    return [
        f"{mail.to} got a mail {mail.at - story.erased[mail.to]:.0f} s after it was forgotten"
        for mail in facts.mails
        if mail.to in story.erased and mail.at > story.erased[mail.to] + UNDER_WAY_SECONDS
    ]


def lost_alerts(story: Story, facts: Facts) -> list[str]:
    """I1: an alert that its page was shown for is there, as long as its owner is."""
    return [
        f"alert {alert} of person {person} was acknowledged, and is gone"
        for alert, person in story.alerts.items()
        if alert not in facts.alerts and person in facts.people
    ]


def wrong_letters(story: Story, facts: Facts) -> list[str]:
    """I7: each poisonous message is a dead letter, with the receives and the cause that are right for it."""
    by_message = {(letter.subscription, letter.event_id): letter for letter in facts.letters}
    found = []
    for event_id, kind in story.poison.items():
        if event_id not in facts.log:
            continue  # its publishing was never acknowledged; whether it had to be there is another check's
        for name in REFUSING.get(kind, (OWN,)):
            letter = by_message.get((name, event_id))
            why = "is no dead letter" if letter is None else wrong_with(kind, letter)
            if why:
                found.append(f"{name}: {event_id}, {kind}, {why}")
    return found


def wrong_with(kind: str, letter: Letter) -> str:
    """What is wrong with the letter that this kind of poison became; empty: nothing."""
    silent = letter.error_class == SILENT
    own = letter.failures[:-1] if silent else letter.failures
    natural, cause = NATURE[kind]
    if [receive for receive, _ in own] != list(range(1, letter.receive_count + 1)):
        return f"says {letter.receive_count} receives and tells of {[receive for receive, _ in own]}"
    if strange := {error for _, error in own} - natural - OF_THE_CHAOS:
        return f"failed with {', '.join(sorted(strange))}"
    if silent:
        right = letter.cause == "worker_crash" and letter.receive_count == MAX_RECEIVES and own[-1][1] == "LeaseExpired"
        return "" if right else f"fell silent and was buried as {letter.cause} after {letter.receive_count}"
    if not natural:
        return f"takes its worker along, and was buried with {letter.error_class}"
    if letter.cause != cause or own[-1][1] not in natural:
        return f"was buried as {letter.cause} with {own[-1][1]}"
    if cause == "permanent" and sum(error in natural for _, error in own) != 1:
        return "was tried again, though it can never succeed"
    if cause != "permanent" and letter.receive_count != MAX_RECEIVES:
        return f"was buried after {letter.receive_count} receives"
    return ""


def innocents_buried(story: Story, facts: Facts) -> list[str]:
    """I7: nothing else is a dead letter."""
    return [
        f"{letter.subscription}: {letter.event_id} was buried as {letter.cause}: {letter.error_class}"
        for letter in facts.letters
        if letter.event_id not in story.poison
    ]


def redrives_gone_wrong(story: Story, facts: Facts) -> list[str]:
    """I3, I13: what somebody was told is redriven was applied once, in one decision, which is on the audit log."""
    by_id = {letter.id: letter for letter in facts.letters}
    found = []
    for by, ids in story.redriven:
        for id_ in ids:
            letter = by_id.get(id_)
            if letter is None or letter.outcome not in {"applied", "older", "suppressed"}:
                found.append(
                    f"letter {id_}, redriven by {by}, ended as {letter.outcome or 'nothing' if letter else 'gone'}"
                )
    entries = [ids for _, ids in facts.audit]
    decided = Counter(id_ for ids in entries for id_ in ids)
    found += [f"letter {id_} was redriven by {count} decisions" for id_, count in decided.items() if count > 1]
    acknowledged = [(by, tuple(sorted(ids))) for by, ids in story.redriven if ids]
    there = {(by, tuple(sorted(ids))) for by, ids in facts.audit}
    found += [
        f"{by} redrove {len(ids)} letters, and the audit log does not know it"
        for by, ids in acknowledged
        if (by, ids) not in there
    ]
    return found


def _of_sales(look: Callable[[SalesStory, SalesFacts], list[str]]) -> Callable[[Story, Facts], list[str]]:
    return lambda story, facts: look(story.sales, facts.sales)


CHECKS: dict[str, Callable[[Story, Facts], list[str]]] = {
    "lost, though acknowledged": lost_at_the_handoff,
    "half of a transaction": torn_transactions,
    "neither applied nor buried": lost_in_custody,
    "still waiting at the end": still_waiting,
    "effect without ledger, or ledger without effect": effects_apart_from_the_ledger,
    "effects that happened twice": double_effects,
    "inversions within a wine or key": inversions,
    "published out of order": published_out_of_order,
    "offers that are not what was acknowledged": wrong_prices,
    "good requests refused": wrongly_refused,
    "mails twice under one key, lost or of nobody": mails_gone_wrong,
    "mails to people who were forgotten": mails_to_the_forgotten,
    "alerts lost": lost_alerts,
    "poison with a wrong count or cause": wrong_letters,
    "innocent messages buried": innocents_buried,
    "redrives not applied once, or not on the audit log": redrives_gone_wrong,
    "purchases lost or other than acknowledged": _of_sales(sales.lost_purchases),
    "bought, though told that nothing was": _of_sales(sales.unwanted_purchases),
    "good purchases refused": _of_sales(sales.wrongly_refused),
    "bottles sold twice, or lost": _of_sales(sales.wrong_stock),
    "money that does not balance, to the cent": _of_sales(sales.unbalanced_money),
    "purchases left on their way": _of_sales(sales.unended_sagas),
    "told of what did not happen, or not told of what did": _of_sales(sales.false_tidings),
    "decisions about purchases not on the audit log, or of nobody": _of_sales(sales.unlogged_decisions),
}


def check(story: Story, facts: Facts) -> dict[str, list[str]]:
    """The violations by check; an empty list for each that holds."""
    return {name: look(story, facts) for name, look in CHECKS.items()}
