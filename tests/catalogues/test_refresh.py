"""A catalogue file is taken: the differences alone, each row counted once."""

import pytest

from pricing.models import Offer
from tests import cast
from tests.catalogues.refreshing import MONTROSE, at, counts, csv, prices, row, shelf, taken
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def merchant():
    return cast.merchant()


def test_a_first_file_is_taken_whole(merchant):
    cast.wine()
    file = taken(merchant, csv(MONTROSE.format("189.00"), "sku-2,Corkscrew,,,9.00,USD"))
    assert (file.status, file.error, counts(file)) == ("done", "", {"changed": 1, "unmatched": 1})
    assert prices() == {"wn_4417": "189.00"}
    [message] = published()
    assert message["attributes"] == {"catalogue_file": str(file.pk), "listing": "sku-1"}


def test_the_same_file_again_publishes_nothing_and_confirms_every_price(merchant):
    shelf(3)
    data = csv(row(1), row(2), row(3))
    taken(merchant, data)
    before = published()
    file = taken(merchant, data, hours=24)
    assert counts(file) == {"unchanged": 3}
    assert published() == before
    assert set(Offer.objects.values_list("occurred_at", "seen_at")) == {(at(0), at(24))}


def test_only_what_differs_is_published(merchant):
    shelf(3)
    taken(merchant, csv(row(1), row(2), row(3)))
    file = taken(merchant, csv(row(1), row(2, 18), row(3)), hours=24)
    assert counts(file) == {"changed": 1, "unchanged": 2}
    assert [message["key"] for message in published()][3:] == ["wn_2"]
    assert prices() == {"wn_1": "20.00", "wn_2": "18.00", "wn_3": "20.00"}
