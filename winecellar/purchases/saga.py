"""The steps of a purchase, in their order, and what undoes each. Pure; checks.py has `manage.py check` hold them to it.

A step's category says what its compensation is worth: reversible leaves no trace, compensable leaves a residue that
people must be told of, irreversible has none. So what is irreversible comes after all that can fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from winecellar.purchases import events


class Category(StrEnum):
    REVERSIBLE = "reversible"
    COMPENSABLE = "compensable with residue"
    IRREVERSIBLE = "irreversible"


@dataclass(frozen=True)
class Step:
    """`may_fail`: the purchase can still come to nothing here. `command`: what asks for it; "" where the buyer's own
    request does it. `undone_by`: in a word, and `undo_command`. `residue`: what stays after that, for whom it concerns.
    """

    name: str
    category: Category
    may_fail: bool
    command: str = ""
    undone_by: str = ""
    undo_command: str = ""
    residue: str = ""


RESERVE = Step("reserve", Category.REVERSIBLE, may_fail=True, undone_by="release")
CHARGE = Step(
    "charge",
    Category.COMPENSABLE,
    may_fail=True,
    command=events.CHARGE_PURCHASE,
    undone_by="refund",
    undo_command=events.REFUND_PURCHASE,
    residue="The charge and the refund both stay on your statement. The refund reaches it in 5 to 10 business days. "
    "What your bank took for changing money, it may keep.",
)
# A mailbox that takes no mail does not unmake a purchase: the step is over when each mail was sent or refused for good.
NOTIFY = Step("notify", Category.IRREVERSIBLE, may_fail=False, command=events.SEND_PURCHASE_EMAIL)

SAGA = (RESERVE, CHARGE, NOTIFY)


def problems(steps: Sequence[Step]) -> Iterator[str]:
    """What is wrong with an order of steps, in words."""
    for place, step in enumerate(steps):
        fallible = next((later for later in steps[place + 1 :] if later.may_fail), None)
        if step.category is Category.IRREVERSIBLE and fallible:
            yield f"{step.name} cannot be undone and comes before {fallible.name}, which can fail."
        if step.category is Category.IRREVERSIBLE and step.undone_by:
            yield f"{step.name} is irreversible and names a compensation."
        if step.category is not Category.IRREVERSIBLE and not step.undone_by:
            yield f"{step.name} is {step.category} and names no compensation."
        if (step.category is Category.COMPENSABLE) != bool(step.residue):
            yield f"{step.name} must say what stays after its compensation if, and only if, something does."
