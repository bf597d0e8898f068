"""What changes about accounts. Each function is one transaction; what follows from it is published in it.

Guarantee: a mail exists exactly if the change it tells of does; an erased account leaves nothing that a mail could be
made from. Locks the person, then what is theirs in id order. Called by the adapter, the views and the admin.
"""

from __future__ import annotations

from datetime import datetime

from allauth.account.models import EmailAddress
from django.contrib.admin.models import LogEntry
from django.db import transaction

from jobs.messages import NewMessage
from jobs.outbox import publish
from pricing.sealing import seal
from winecellar.accounts.belongings import belongings, books
from winecellar.accounts.events import ADDRESS_CONFIRMED, SEND_ACCOUNT_EMAIL
from winecellar.accounts.letters import Written
from winecellar.accounts.models import AccountMail, User


class EraseRefusedError(Exception):
    """The account cannot be erased now; the message says why, in the reader's words."""


def lock(user_id: int) -> User:
    """The person, whose alerts and address nobody else changes until this transaction ends."""
    return User.objects.select_for_update(no_key=True).get(pk=user_id)


def announce_confirmed(*, user_id: int) -> None:
    """Within the transaction that confirms the first address."""
    publish([NewMessage(type=ADDRESS_CONFIRMED, key=f"user:{user_id}", body={"user_id": user_id})])


def queue_mail(*, to: str, user: User | None, letter: Written, now: datetime) -> AccountMail:
    """Have a mail sent. Until it is, it is a row that goes with the account."""
    with transaction.atomic():
        mail = AccountMail.objects.create(
            user=user,
            to=to,
            subject=letter.subject,
            sealed_text=seal(letter.text.encode()),
            sealed_html=seal(letter.html.encode()),
            created_at=now,
            wanted_until=now + letter.wanted,
        )
        publish([NewMessage(type=SEND_ACCOUNT_EMAIL, key=f"account-mail:{mail.pk}", body={"account_mail_id": mail.pk})])
    return mail


def propose_address(*, user: User, email: str) -> EmailAddress:
    """Another address, which becomes the person's once it is confirmed; an earlier proposal is forgotten.

    A new row each time: a link that was sent for another address confirms nothing.
    """
    with transaction.atomic():
        lock(user.pk)
        EmailAddress.objects.filter(user=user, primary=False).delete()
        return EmailAddress.objects.create(user=user, email=email, primary=False, verified=False)


def set_address(*, user: User, email: str) -> EmailAddress:
    """An operator gives somebody another address: it is theirs at once, but not confirmed."""
    with transaction.atomic():
        lock(user.pk)
        EmailAddress.objects.filter(user=user).delete()
        User.objects.filter(pk=user.pk).update(email=email)
        return EmailAddress.objects.create(user=user, email=email, primary=True, verified=False)


def erase(*, user: User) -> None:
    """Forget a person and all that is theirs. Raises EraseRefusedError for whoever looks after the site.

    Somebody who once worked in the admin stays as a number without a name or an address, since the admin's log says who
    did what. Messages that wait find nothing to send; a mail that the mail server is being handed at this moment
    may still arrive.
    """
    with transaction.atomic():
        person = User.objects.select_for_update().get(pk=user.pk)
        if person.is_staff:
            raise EraseRefusedError("You look after this site. Have another operator take that from you first.")
        owned = belongings()
        for belonging in [*owned, *books()]:
            # In the order in which their other writers lock them, and before any is counted: what a worker adds to them
            # meanwhile is either seen below or never written.
            list(belonging.of(person).select_for_update(of=("self",)).order_by("pk").values_list("pk"))
        if LogEntry.objects.filter(user=person).exists():
            for belonging in owned:
                belonging.of(person).delete()
            _forget_name(person)
        else:
            person.delete()


def _forget_name(person: User) -> None:
    person.email = f"erased-{person.pk}@invalid"
    person.name = ""
    person.is_active = False
    person.last_login = None
    person.set_unusable_password()
    person.groups.clear()
    person.user_permissions.clear()
    person.save()
