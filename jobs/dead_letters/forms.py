"""The forms of dead letters' pages: the list's filters, and what an act asks for. Edges of admin_dead_letters.py."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings

from jobs.dead_letters.acts import Act
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.dead_letters.services import RefusedError
from jobs.models import Subscription

AGES = (("", "any age"), ("900", "15 minutes"), ("3600", "an hour"), ("86400", "a day"), ("604800", "7 days"))
DECISIONS = (("open", "waits for a decision"), ("", "any"), *Decision.choices)


class FilterForm(forms.Form):
    """What the list shows: by age, class, subscription, origin and decision; the rest comes by links."""

    decision = forms.ChoiceField(choices=DECISIONS, required=False)
    subscription = forms.ChoiceField(required=False)
    origin = forms.CharField(required=False, max_length=200)
    error = forms.CharField(required=False, max_length=200, label="class")
    event_id = forms.CharField(required=False, max_length=200, label="event")
    within = forms.ChoiceField(choices=AGES, required=False, label="no older than")
    fingerprint = forms.CharField(required=False, max_length=16, widget=forms.HiddenInput)
    since = forms.CharField(required=False, widget=forms.HiddenInput)
    until = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = set(Subscription.objects.values_list("name", flat=True)) | {self.data.get("subscription", "")}
        choice = self.fields["subscription"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [("", "any"), *((name, name) for name in sorted(names - {""}))]

    def selection(self, now: datetime) -> Selection:
        """Raises ValueError that names the field."""
        query = dict(self.cleaned_data)
        if within := query.pop("within"):
            query["since"] = query["since"] or (now - timedelta(seconds=int(within))).isoformat()
        return Selection.from_query(query)


class DecisionForm(forms.Form):
    """A reason, and what else the act asks for."""

    note = forms.CharField(
        label="Reason",
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It stays with the letters.",
    )
    told = forms.CharField(
        label="Who has been told",
        required=False,
        max_length=500,
        help_text="These messages are processed again: nothing remembers any more whether they were.",
    )
    rate_per_second = forms.IntegerField(label="Letters a second", min_value=1, max_value=settings.REDRIVE_MOST_RATE)
    stop_share = forms.FloatField(
        label="Stop when more than this share fails again", min_value=0, max_value=1, help_text="0.1 is a tenth."
    )
    wake_at = forms.DateTimeField(
        label="To be decided at (UTC)", widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    to = forms.CharField(label="Who is to decide", max_length=200)

    def __init__(self, act: Act, data: Any = None, *, usual: dict[str, str] | None = None) -> None:
        """`usual`: what stands in the fields at first, where it is not what the settings say."""
        super().__init__(data, initial=self._usual() | (usual or {}), use_required_attribute=False)
        for name in list(self.fields):
            if name != "note" and name not in act.asks:
                del self.fields[name]

    @staticmethod
    def _usual() -> dict[str, Any]:
        return {"rate_per_second": settings.REDRIVE_RATE, "stop_share": settings.REDRIVE_STOP_SHARE}

    @property
    def given(self) -> dict[str, Any]:
        return dict(self.cleaned_data)

    @property
    def typed(self) -> dict[str, str]:
        """As it was sent, for the next portion."""
        return {name: self.data[name] for name in self.fields if name in self.data}

    def needs_telling(self, old: int) -> None:
        """The separate confirmation for letters older than the ledger; without any it is not asked."""
        if not old:
            self.fields.pop("told", None)

    def refuse(self, error: RefusedError) -> None:
        field, _, why = str(error).partition(": ")
        known = field in self.fields
        self.add_error(field if known else None, why[:1].upper() + why[1:] if known else str(error))
