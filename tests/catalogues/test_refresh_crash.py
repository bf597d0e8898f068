"""Interrupted anywhere, a file goes on where it stopped; two workers never take one merchant's files at once."""

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone

from jobs.errors import LeaseLostError
from jobs.models import Delivery
from pricing import listings
from pricing.catalogues import lease, refresh, stage
from pricing.catalogues.ahead import Ahead
from pricing.matching import Ask, read_listing
from pricing.models import CatalogueFile, CatalogueRemark, CatalogueSettings, Listing, Offer
from tests import cast
from tests.catalogues.refreshing import at, counts, csv, go_on, prices, received, row, shelf, stages, taken
from tests.faults import page
from tests.faults.crash import Points, sweep
from tests.pricing.observed import published

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
BEFORE = [row(n) for n in range(1, 5)]
AFTER = [row(1, 18), row(2), row(3, "a lot"), row(2, 30), row(5)]
EXPECTED = {"changed": 2, "unchanged": 1, "rejected": 1, "unread": 1, "absent": 1, "withdrawn": 1}


class OneAfterTheOther(Ahead):
    """What is done ahead, done at once and on the same connection: so that its statements are points too."""

    def begin(self, key, work):
        self._key, self._result = key, work()

    def take(self, key, work):
        return self._result if getattr(self, "_key", None) == key else work()

    def settle(self):
        pass


def let_the_lease_end():
    CatalogueFile.objects.update(leased_until=timezone.now() - timedelta(seconds=1))


def wipe():
    for model in (CatalogueFile, Listing, Offer, CatalogueSettings):
        model.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_delivery; DELETE FROM jobs_message")
    stage.drop_strays()


def test_a_refresh_that_dies_at_every_point_counts_each_row_once_and_publishes_each_change_once(
    merchant, settings, monkeypatch, capsys
):
    monkeypatch.setattr(refresh, "Ahead", OneAfterTheOther)
    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 3, 2
    shelf(5)
    files = []

    def prepare():
        wipe()
        taken(merchant, csv(*BEFORE), smallest_share=50)
        files[:] = [received(merchant, csv(*AFTER), hours=24, absent="withdraw")]
        files[0].refresh_from_db()

    def act(_: Points):
        refresh.run(file_id=files[0].pk, now=at(24))

    def check_after_crash():
        """What is counted as changed or withdrawn is what is published, at every moment."""
        file = CatalogueFile.objects.get(pk=files[0].pk)
        assert len(published()) == len(BEFORE) + file.changed + file.withdrawn
        assert CatalogueRemark.objects.filter(file=file, kind="rejected").count() == file.rejected

    def recover():
        let_the_lease_end()
        go_on(files[0], hours=24)

    def check_end(where):
        file = CatalogueFile.objects.get(pk=files[0].pk)
        assert (file.status, counts(file)) == ("done", EXPECTED), where
        assert prices() == {"wn_1": "18.00", "wn_2": "20.00", "wn_3": "20.00", "wn_5": "20.00"}, where
        assert len(published()) == len(BEFORE) + 3, where
        stage.drop_strays()
        assert stages() == [], where

    points = sweep(prepare=prepare, act=act, check_after_crash=check_after_crash, recover=recover, check_end=check_end)
    with capsys.disabled():
        print(f"\ncrash points: a catalogue refresh: {points}")
    page.hold("a catalogue refresh", points)


def test_a_stage_that_the_server_has_lost_is_read_again_and_the_rest_is_taken(merchant, settings):
    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 2, 2
    shelf(7)
    file = received(merchant, csv(*map(row, range(1, 8))))
    leased, ahead = lease.claim(file_id=file.pk, now=at(0)), Ahead()
    while leased.cursor < 4:
        refresh.step(leased, ahead, now=at(0))
    ahead.close()
    with connection.cursor() as cursor:
        cursor.execute(f'TRUNCATE "{leased.stage}"')
    let_the_lease_end()
    assert counts(go_on(file)) == {"changed": 7}
    assert len(published()) == 7


def test_while_one_file_is_taken_another_of_the_merchant_is_refused_in_words(merchant):
    shelf(1)
    first, second = received(merchant, csv(row(1))), received(merchant, csv(row(1, 18)), hours=1)
    lease.claim(file_id=first.pk, now=at(0))
    for file in (first, second):
        with pytest.raises(lease.BusyError, match=f"File {first.pk} of mch_082 is being taken just now"):
            refresh.run(file_id=file.pk, now=at(1))
    assert published() == []


def test_a_file_of_another_merchant_is_not(merchant):
    shelf(1)
    first, second = received(merchant, csv(row(1))), received(cast.merchant("083", "Y"), csv(row(1)))
    lease.claim(file_id=first.pk, now=at(0))
    assert counts(go_on(second)) == {"changed": 1}


def test_an_interrupted_file_gives_way_to_the_next_one_when_its_lease_is_over(merchant):
    shelf(1)
    first, second = received(merchant, csv(row(1))), received(merchant, csv(row(1, 18)), hours=1)
    lease.claim(file_id=first.pk, now=at(0))
    let_the_lease_end()
    assert counts(go_on(second, hours=1)) == {"changed": 1}
    first.refresh_from_db()
    assert (first.status, first.error) == (
        "refused",
        f"It was interrupted, and file {second.pk} was taken in its place.",
    )
    assert stages() == []


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_who_has_lost_the_lease_writes_nothing_more(merchant, steps):
    shelf(3)
    file = received(merchant, csv(*map(row, range(1, 4))))
    old, ahead = lease.claim(file_id=file.pk, now=at(0)), Ahead()
    for _ in range(steps):
        refresh.step(old, ahead, now=at(0))
    let_the_lease_end()
    lease.claim(file_id=file.pk, now=at(0))
    before = CatalogueFile.objects.values().get(), published(), prices()
    with pytest.raises(LeaseLostError):
        while refresh.step(old, ahead, now=at(0)):
            pass
    ahead.close()
    assert (CatalogueFile.objects.values().get(), published(), prices()) == before


def test_a_file_that_fails_can_be_taken_up_again_at_once(merchant, monkeypatch):
    shelf(1)
    file = received(merchant, csv(row(1)))
    with monkeypatch.context() as broken:
        broken.setattr(listings, "record", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            refresh.run(file_id=file.pk, now=at(0))
    other = received(merchant, csv(row(1, 18)), hours=1)
    with pytest.raises(lease.BusyError):  # nor is it forgotten for the next one
        lease.claim(file_id=other.pk, now=at(1))
    assert counts(go_on(file)) == {"changed": 1}


def test_a_file_and_the_shops_webhooks_on_the_same_listings_never_wait_in_a_ring(merchant, settings):
    """The webhooks ask for the listings in another order than the file, and for prices of before and after it."""
    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 20, 10
    wines, rounds = 60, 6
    shelf(wines)
    taken(merchant, csv(*map(row, range(1, wines + 1))))
    errors, done = [], threading.Event()

    def webhooks(step):
        turn = 0
        try:
            while not done.is_set() or turn < 3:
                turn += 1
                numbers = [1 + (n * step + turn) % wines for n in range(15)]
                asks = [
                    Ask(
                        f"sku-{n}",
                        read_listing(f"Cuvée {n}", size="75cl", vintage="2019"),
                        Decimal(15 + turn % 9),
                        "USD",
                        at(1 + turn / 50),
                    )
                    for n in dict.fromkeys(numbers)
                ]
                listings.record(merchant=merchant, asks=asks, attributes={}, now=at(1))
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=webhooks, args=(step,)) for step in (7, 53)]
    for thread in threads:
        thread.start()
    try:
        for night in range(1, rounds + 1):
            file = taken(merchant, csv(*(row(n, 20 + (n + night) % 3) for n in range(1, wines + 1))), hours=night)
            assert sum(counts(file).values()) == wines
    finally:
        done.set()
        for thread in threads:
            thread.join(timeout=60)
    assert errors == []
    last = {message["key"]: message for message in published() if message["type"] == "wine.price_changed"}
    standing = {offer.wine_id: (offer.price_usd, offer.event_id) for offer in Offer.objects.all()}
    assert {key: (each["body"]["new_price_usd"], each["event_id"]) for key, each in last.items()} == standing


@pytest.mark.parametrize(("hours", "expected", "stands"), [(12, "changed", "20.00"), (25, "stale", "18.00")])
def test_a_price_that_comes_while_a_window_waits_for_its_wine_is_not_confirmed_away(merchant, hours, expected, stands):
    """A feed holds the wine, and the file's comparison waits: of its 20 and the feed's 18 the later must stand."""
    shelf(1)
    data = csv(row(1))
    taken(merchant, data)
    file = received(merchant, data, hours=24)
    has_lock, let_go = threading.Event(), threading.Event()

    def feed():
        from django.db import transaction

        with transaction.atomic():
            listed = read_listing("Cuvée 1", size="75cl", vintage="2019")
            asks = [Ask("sku-1", listed, Decimal("18.00"), "USD", at(hours))]
            listings.record(merchant=merchant, asks=asks, attributes={}, now=at(25))
            has_lock.set()
            let_go.wait(30)
        connection.close()

    def take():
        refresh.run(file_id=file.pk, now=at(24))
        connection.close()

    threads = [threading.Thread(target=feed), threading.Thread(target=take)]
    threads[0].start()
    assert has_lock.wait(30)
    threads[1].start()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    deadline = timezone.now() + timedelta(seconds=30)
    with connection.cursor() as cursor:
        while timezone.now() < deadline:
            cursor.execute(waiting)
            if cursor.fetchone()[0]:
                break
    let_go.set()
    for thread in threads:
        thread.join(timeout=60)
    file.refresh_from_db()
    assert counts(file) == {expected: 1}
    assert prices() == {"wn_1": stands}
    assert not Delivery.objects.filter(subscription__name="catalogue-refresh").exists()
