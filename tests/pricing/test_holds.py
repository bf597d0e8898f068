from datetime import timedelta
from decimal import Decimal

import pytest

from pricing import holds
from pricing.models import HeldPrice, Offer
from pricing.rules import Verdict
from pricing.services import UnknownWineError, record_observations
from tests.cast import NOW
from tests.pricing.observed import make_offer, published, seen

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture
def held(merchant, wine):
    make_offer(merchant, wine, "189.00")
    record_observations(merchant=merchant, observations=[seen("9.00", NOW + HOUR)], attributes={}, now=NOW + HOUR)
    return HeldPrice.objects.get()


def test_a_released_price_is_the_price_and_announced(held):
    outcome = holds.release(held_id=held.pk, by="7", now=NOW + 2 * HOUR)
    assert outcome.verdict is Verdict.APPLIED
    assert Offer.objects.get().price_usd == Decimal("9.00")
    [message] = published()
    assert message["body"]["old_price_usd"] == Decimal("189.00")
    assert message["attributes"] == {"released_by": "7"}
    assert not HeldPrice.objects.exists()


def test_a_price_is_released_once(held):
    holds.release(held_id=held.pk, by="7", now=NOW)
    assert holds.release(held_id=held.pk, by="7", now=NOW) is None
    assert not holds.reject(held_id=held.pk)
    assert len(published()) == 1


def test_a_rejected_price_leaves_no_trace_in_offers_or_events(held):
    assert holds.reject(held_id=held.pk)
    assert holds.release(held_id=held.pk, by="7", now=NOW) is None
    assert Offer.objects.get().price_usd == Decimal("189.00")
    assert published() == []


def test_a_price_released_after_a_newer_one_arrived_is_history(held, merchant):
    record_observations(merchant=merchant, observations=[seen("150.00", NOW + 2 * HOUR)], attributes={}, now=NOW)
    outcome = holds.release(held_id=held.pk, by="7", now=NOW)
    assert outcome.verdict is Verdict.STALE
    assert Offer.objects.get().price_usd == Decimal("150.00")


def test_a_price_of_a_wine_retired_meanwhile_stays_held(held, wine):
    type(wine).objects.update(retired_at=NOW)
    with pytest.raises(UnknownWineError):
        holds.release(held_id=held.pk, by="7", now=NOW)
    assert HeldPrice.objects.exists()
