from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import transaction

from jobs.errors import PermanentError
from pricing import history
from pricing.models import Availability, PriceHistory
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


# --- The gaps ---------------------------------------------------------------------------------------------------

GAP = {
    "event_id": "evt_1",
    "type": "wine.offer_withdrawn",
    "occurred_at": "2026-03-14T09:12:04Z",
    "wine_id": "wn_4417",
    "wine_name": "Ch. Montrose 2016",
    "merchant_id": "mch_082",
    "price_usd": Decimal("154.00"),
    "currency": "USD",
}
WRONG_GAPS = {
    "event_id": WRONG["event_id"],
    "wine_id": WRONG["wine_id"],
    "merchant_id": WRONG["wine_id"],
    "price_usd": WRONG["new_price_usd"],
    "currency": WRONG["currency"],
    "occurred_at": WRONG["occurred_at"],
}


def gap(**fields):
    body = {**GAP, **fields}
    return received(body, type_=body["type"])


def test_an_end_and_a_return_are_rows_of_availability_beside_the_prices(django_assert_num_queries):
    returned = gap(event_id="evt_3", type="wine.offer_returned", occurred_at="2026-03-14T10:00:00Z")
    with django_assert_num_queries(2):
        history.append([gap(), received({**BODY, "event_id": "evt_2"}), returned])
    found = list(Availability.objects.order_by("id").values_list("event_id", "merchant_id", "price_usd", "observed_at"))
    assert found == [
        ("evt_1", "mch_082", None, datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC)),
        ("evt_3", "mch_082", Decimal("154.00"), datetime(2026, 3, 14, 10, tzinfo=UTC)),
    ]
    assert [row[0] for row in rows()] == ["evt_2"]


@pytest.mark.parametrize("name", WRONG_GAPS)
def test_sql_refuses_of_a_gap_exactly_what_parsing_refuses(name):
    for value in WRONG_GAPS[name]:
        with pytest.raises(PermanentError, match=f"^{name} "), transaction.atomic():
            history.append([gap(), gap(**{name: value})])
        assert not Availability.objects.exists()
    history.append([gap()])
    assert Availability.objects.count() == 1
