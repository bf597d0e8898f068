from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import transaction

from jobs.errors import PermanentError
from pricing import history
from pricing.models import PriceHistory
from tests.pricing.observed import received
from tests.pricing.test_events import BODY, WRONG

pytestmark = pytest.mark.django_db


def rows():
    return list(
        PriceHistory.objects.order_by("id").values_list(
            "event_id", "wine_id", "merchant_id", "price_usd", "observed_at", "late"
        )
    )


def test_a_batch_is_appended_in_its_order_with_one_statement(django_assert_num_queries):
    messages = [
        received({**BODY, "event_id": "evt_1"}),
        received(
            {
                **BODY,
                "event_id": "evt_2",
                "type": "wine.late_price_observed",
                "occurred_at": "2026-03-14T08:00:00+01:00",
            }
        ),
        received({**BODY, "event_id": "evt_3", "new_price_usd": 1}),
    ]
    with django_assert_num_queries(1):
        history.append(messages)
    noon = datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC)
    assert rows() == [
        ("evt_1", "wn_4417", "mch_082", Decimal("154.00"), noon, False),
        ("evt_2", "wn_4417", "mch_082", Decimal("154.00"), datetime(2026, 3, 14, 7, tzinfo=UTC), True),
        ("evt_3", "wn_4417", "mch_082", Decimal("1.00"), noon, False),
    ]


def test_an_event_without_convenience_fields_is_appended():
    contract = {name: BODY[name] for name in ("event_id", "wine_id", "new_price_usd", "occurred_at", "currency")}
    history.append([received(contract)])
    assert [row[:3] for row in rows()] == [("evt_9f31", "wn_4417", "")]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_sql_refuses_exactly_what_parsing_refuses(name, value):
    good, bad = received(BODY), received({**BODY, name: value})
    with pytest.raises(PermanentError, match=f"^{name} "), transaction.atomic():
        history.append([good, bad])
    assert rows() == []
    history.append([good])
    assert len(rows()) == 1


@pytest.mark.parametrize("name", WRONG)
def test_sql_refuses_a_missing_field_too(name):
    body = {key: value for key, value in BODY.items() if key != name}
    with pytest.raises(PermanentError, match=f"^{name} required"), transaction.atomic():
        history.append([received(body)])
    assert rows() == []


def test_a_disagreement_between_the_two_is_an_error_and_not_a_silent_gap(monkeypatch):
    monkeypatch.setattr("pricing.history.PriceChanged.parse", lambda message: None)
    with pytest.raises(RuntimeError, match="2 price events, 1 rows"), transaction.atomic():
        history.append([received(BODY), received({**BODY, "currency": "EUR"})])
    assert rows() == []
