"""Loading the catalogue: complete, idempotent, careful."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command
from django.db.models import Max, Sum

from alerts.models import Alert
from jobs.models import Delivery
from pricing.models import Merchant, Offer, PriceHistory, Wine
from winecellar.cellars.models import Cellar
from winecellar.demo import catalogue
from winecellar.demo.history import DAYS
from winecellar.demo.load import Loaded, load_catalogue

NOW = datetime(2030, 5, 17, 9, 30, tzinfo=UTC)
NOTHING = Loaded(0, 0, 0, 0, 0, 0, 0)
TABLES = (Alert, Merchant, Offer, PriceHistory, Wine, get_user_model())


@pytest.fixture
def loaded(transactional_db):
    return load_catalogue(now=NOW)


def rows():
    return {model: list(model.objects.order_by("pk").values()) for model in TABLES}


def test_everything_is_there(loaded):
    assert Wine.objects.count() == loaded.wines == len(catalogue.wines())
    assert Merchant.objects.count() == loaded.merchants == 5
    assert Offer.objects.count() == loaded.offers == sum(len(wine.sold_by) for wine in catalogue.wines())
    assert PriceHistory.objects.count() == loaded.past_prices > 5 * loaded.offers
    assert Alert.objects.count() == loaded.alerts == sum(len(person.watches) for person in catalogue.PEOPLE)


def test_the_collectors_cellar_has_forty_bottles_and_ninety_nights(loaded):
    (cellar,) = Cellar.objects.all()
    assert cellar.owner.email == catalogue.COLLECTOR.email
    assert cellar.bottles.count() == loaded.bottles
    assert 35 <= cellar.bottles.aggregate(held=Sum("quantity"))["held"] <= 45
    nights = list(cellar.valuations.order_by("day"))
    assert [night.day for night in nights] == [NOW.date() - timedelta(days=n) for n in range(DAYS - 1, -1, -1)]
    assert len({night.value for night in nights}) > DAYS / 2
    assert {night.without_value for night in nights} == {1}
    assert cellar.bottles.filter(consumptions__isnull=False).count() == 3


def test_loading_twice_changes_nothing(loaded):
    before = rows()
    assert load_catalogue(now=datetime(2030, 6, 1, tzinfo=UTC)) == NOTHING
    assert rows() == before


def test_history_ends_at_the_price_of_the_offer_and_each_row_has_its_own_event(loaded):
    for offer in Offer.objects.all():
        series = PriceHistory.objects.filter(wine_id=offer.wine_id, merchant_id=offer.merchant_id)
        last = series.latest("observed_at")
        assert (last.price_usd, last.observed_at, last.event_id) == (offer.price_usd, offer.occurred_at, offer.event_id)
    assert PriceHistory.objects.values("event_id").distinct().count() == PriceHistory.objects.count()
    assert PriceHistory.objects.aggregate(last=Max("observed_at"))["last"] < NOW


def test_a_deleted_alert_stays_deleted_and_a_changed_password_stays_changed(loaded):
    Alert.objects.filter(user__email=catalogue.COLLECTOR.email).delete()
    user = get_user_model().objects.get(email=catalogue.COLLECTOR.email)
    user.set_password("another-one-now")
    user.save(update_fields=["password"])
    assert load_catalogue(now=NOW) == NOTHING
    assert not Alert.objects.filter(user=user).exists()
    assert authenticate(username=catalogue.COLLECTOR.email, password="another-one-now") == user


def test_a_missing_offer_comes_back_with_its_history_alone(loaded):
    offer = Offer.objects.get(wine_id="wn_4417", merchant_id="mch_082")
    PriceHistory.objects.filter(wine_id=offer.wine_id, merchant_id=offer.merchant_id).delete()
    offer.delete()
    again = load_catalogue(now=NOW)
    assert (again.offers, again.wines, again.alerts) == (1, 0, 0)
    assert again.past_prices == PriceHistory.objects.filter(wine_id="wn_4417", merchant_id="mch_082").count() > 0


def test_the_collector_and_the_operator_can_sign_in_and_the_others_cannot(loaded):
    collector = authenticate(username=catalogue.COLLECTOR.email, password=catalogue.COLLECTOR.password)
    operator = authenticate(username=catalogue.OPERATOR.email, password=catalogue.OPERATOR.password)
    assert (collector.is_staff, collector.is_superuser) == (False, False)
    assert (operator.is_staff, operator.is_superuser) == (True, True)
    for person in catalogue.OTHERS:
        assert not get_user_model().objects.get(email=person.email).has_usable_password()


def test_every_alert_waits_below_the_price_now_and_is_queued_for_its_first_check(loaded):
    for alert in Alert.objects.all():
        offers = Offer.objects.filter(wine_id=alert.wine_id)
        if alert.merchant_id:
            offers = offers.filter(merchant_id=alert.merchant_id)
        assert Decimal("0.85") * min(o.price_usd for o in offers) < alert.target < min(o.price_usd for o in offers)
        assert alert.state == Alert.State.PENDING
    assert Delivery.objects.count() == Alert.objects.count() + Wine.objects.count()  # and each wine for its first index


def test_production_refuses_people_with_known_passwords(transactional_db, settings):
    settings.PRODUCTION = True
    with pytest.raises(CommandError, match="not in production"):
        call_command("load_demo_catalogue")
    assert not get_user_model().objects.exists()


def test_the_command_says_what_it_added(transactional_db, capsys):
    call_command("load_demo_catalogue")
    assert f"Added {len(catalogue.wines())} wines, 5 merchants" in capsys.readouterr().out
    call_command("load_demo_catalogue")
    assert "Added 0 wines, 0 merchants, 0 offers with 0 past prices, 0 people and 0 alerts." in capsys.readouterr().out
