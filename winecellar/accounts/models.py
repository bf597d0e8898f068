"""A person, known by an email address; the mails about accounts that wait; in sessions.py, who is signed in.

Whether an address is confirmed stands once, in allauth's EmailAddress: the row that is primary is the person's address.
"""

from typing import Any, ClassVar

from allauth.account.models import EmailAddress
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models, transaction
from django.db.models.functions import Lower, Now
from django.utils.functional import cached_property

from winecellar.accounts.sessions import Session

__all__ = ["AccountMail", "CacheEntry", "Session", "User", "UserManager"]


class UserManager(BaseUserManager["User"]):
    """Creates people; addresses are stored in lower case, for two spellings of one address are one person."""

    def create_user(self, email: str, password: str | None = None, *, confirmed: bool = False, **fields: Any) -> "User":
        """The person and their address together. `confirmed` only where somebody answers for the address."""
        if not email:
            raise ValueError("email: an account needs an address")
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        with transaction.atomic(using=self._db):
            user.save(using=self._db)
            EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=confirmed)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Whoever can run commands on the server answers for the address that they type."""
        return self.create_user(email, password, confirmed=True, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=150, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False, help_text="May open the admin.")
    joined_at = models.DateTimeField(db_default=Now())

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = "person"
        verbose_name_plural = "people"
        constraints = (
            models.CheckConstraint(name="accounts_user_email_lower", condition=models.Q(email=Lower("email"))),
        )

    def __str__(self) -> str:
        return self.email

    def get_short_name(self) -> str:
        return self.name or self.email.partition("@")[0]

    @cached_property
    def address_is_confirmed(self) -> bool:
        """Whether the person has proved that the address is theirs. Until then no alert is compared or mailed."""
        return bool(EmailAddress.objects.filter(user_id=self.pk, primary=True, verified=True).exists())


class AccountMail(models.Model):
    """A mail about an account, from the request that caused it until it is delivered; then the row goes.

    The text is sealed: it holds links that open the account, and the database's readers should not have them.
    """

    # Empty for a mail to an address that has no account. With the account goes what would still have been sent to it.
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="account_mails")
    to = models.EmailField()
    subject = models.CharField(max_length=200)
    sealed_text = models.TextField()
    sealed_html = models.TextField()
    created_at = models.DateTimeField()
    # When its link stops working: later it is not worth sending.
    wanted_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.subject} ({self.pk})"


class CacheEntry(models.Model):
    """What cache.py keeps: attempts counted, codes used. UNLOGGED (see the migration)."""

    key = models.TextField(primary_key=True)
    value = models.TextField()
    expires_at = models.DateTimeField(null=True, db_index=True)

    def __str__(self) -> str:
        return self.key
