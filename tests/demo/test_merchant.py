"""The simulated merchant: against a scripted feed, and against the real one."""

import json
import threading
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from pricing.keys import create_key
from pricing.models import FeedKey, Offer
from pricing.models import Merchant as MerchantRow
from winecellar.demo.credentials import fresh_keys
from winecellar.demo.feed_client import PATH, FeedClient, Observation, write_body
from winecellar.demo.load import load_catalogue
from winecellar.demo.market import Quote
from winecellar.demo.merchant import LARGEST_BATCH, Merchant, Tagged
from winecellar.demo.tally import Tally

SECONDS = 20
QUENBY = "mch_082"


def tagged(number=1, new="161.50", wine="wn_4417", nightly=False):
    quote = Quote(wine, QUENBY, Decimal("189.00"), Decimal(new), promotion=False)
    return [Tagged(quote, datetime.now(UTC), nightly) for _ in range(number)]


class ScriptedFeed:
    """Answers each request with the next step of its script, then as the real feed does, and remembers what it got."""

    def __init__(self, *script):
        self.script = list(script)
        self.requests = []
        feed = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                feed.requests.append((self.headers["Idempotency-Key"], body, self.client_address))
                step = feed.script.pop(0) if feed.script else 202
                if step == "hang up":
                    self.close_connection = True
                    return
                answer = (
                    feed.answer(body) if step == 202 else {"error": {"code": "no", "message": "No.", "field": "price"}}
                )
                content = json.dumps(answer).encode()
                self.send_response(step)
                if step in (429, 503):
                    self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def answer(self, body):
        observations = body.get("observations", [body])
        known = [key for key, *_ in self.requests].count(self.requests[-1][0]) > 1
        results = [
            {"wine_id": o["wine_id"], "applied": True, "event_id": f"evt_{self.requests[-1][0]}_{n}"}
            for n, o in enumerate(observations)
        ]
        return {"accepted": len(results), "duplicate": known, "results": results}


@pytest.fixture
def feed():
    feeds = []

    def start(*script):
        feeds.append(ScriptedFeed(*script))
        return feeds[-1]

    yield start
    for started in feeds:
        started.server.shutdown()
        started.server.server_close()


def merchant_of(feed, tally):
    client = FeedClient(host="127.0.0.1", port=feed.server.server_address[1], key="wck_x_y")
    return Merchant(merchant_id=QUENBY, client=client, tally=tally, run_id="run")


def deliver(feed, *sendings):
    """Let a merchant send these, one waiting list; returns the tally."""
    tally = Tally()
    merchant = merchant_of(feed, tally)
    for sending in sendings:
        merchant.send(sending)
    merchant.finish()
    merchant.start()
    merchant.join(SECONDS)
    assert not merchant.is_alive()
    return tally


def test_an_accepted_price_is_noted_with_the_moment_of_its_202(feed):
    before = datetime.now(UTC)
    tally = deliver(feed(), tagged())
    ((event_id, (price, at)),) = tally.accepted().items()
    assert event_id == "evt_run-mch_082-1_0"
    assert (price.old, price.new) == (Decimal("189.00"), Decimal("161.50"))
    assert before <= at <= datetime.now(UTC)
    assert tally.totals().sent == tally.totals().accepted == tally.totals().events == 1


def test_a_request_that_was_answered_is_sent_again_and_is_a_duplicate(feed):
    scripted = feed()
    tally = deliver(scripted, tagged())
    assert [key for key, *_ in scripted.requests] == ["run-mch_082-1"] * 2
    assert scripted.requests[0][1] == scripted.requests[1][1]
    assert (tally.totals().retries, tally.totals().duplicates) == (1, 1)
    assert (tally.totals().accepted, tally.totals().requests) == (1, 1), "counted once"


def test_a_retry_that_is_taken_for_a_new_request_is_noticed(feed):
    scripted = feed()
    scripted.answer = lambda body: {"duplicate": False, "results": [{"wine_id": "wn_4417", "applied": False}]}
    tally = deliver(scripted, tagged())
    assert (tally.totals().retries, tally.totals().duplicates) == (1, 0)


@pytest.mark.parametrize("step", [429, 503])
def test_not_now_is_followed_by_the_same_request(feed, step):
    scripted = feed(step, step)
    tally = deliver(scripted, tagged())
    assert len({key for key, *_ in scripted.requests}) == 1
    assert tally.totals().waits == 2
    assert tally.totals().accepted == 1


def test_a_lost_answer_is_followed_by_the_same_request_on_a_new_connection(feed):
    scripted = feed("hang up")
    tally = deliver(scripted, tagged())
    (first, second, *_) = scripted.requests
    assert first[:2] == second[:2]
    assert first[2] != second[2]
    assert tally.totals().lost_answers == 1
    assert tally.totals().accepted == 1


def test_a_refusal_is_kept_with_what_the_feed_said(feed):
    tally = deliver(feed(422), tagged())
    assert tally.totals().refused == 1
    assert tally.complaints() == ["mch_082: 422 no price: No."]


def test_what_has_piled_up_goes_as_batches_in_order_on_one_connection(feed):
    scripted = feed()
    tally = deliver(scripted, tagged(150), tagged(88, nightly=True))
    sizes = {key: len(body["observations"]) for key, body, _ in scripted.requests}
    assert list(sizes.values()) == [LARGEST_BATCH, 38]
    assert len({address for *_, address in scripted.requests}) == 1, "kept alive"
    assert tally.totals().accepted == 238


def test_an_abandoned_merchant_ends_although_the_feed_never_takes_anything(feed):
    scripted = feed(*[503] * 10_000)
    tally = Tally()
    merchant = merchant_of(scripted, tally)
    merchant.send(tagged(3))
    merchant.start()
    wait_until(lambda: tally.totals().waits > 0)
    merchant.abandon()
    merchant.join(SECONDS)
    assert not merchant.is_alive()
    assert tally.totals().abandoned == 3


def wait_until(condition):
    ready = threading.Event()
    for _ in range(SECONDS * 100):
        if condition():
            return
        ready.wait(0.01)
    raise AssertionError("never happened")


# --- Against the real feed ---------------------------------------------------------------------------------------


@pytest.fixture
def shop(live_server, transactional_db):
    """The real site with the demo's catalogue, and a client of Quenby & Ostler."""
    load_catalogue(now=timezone.now())
    key = fresh_keys(now=timezone.now())[QUENBY]
    client = FeedClient(host=live_server.thread.host, port=live_server.thread.port, key=key)
    yield client
    client.close()


def observation(price, wine="wn_4417"):
    return Observation(wine, Decimal(price), datetime.now(UTC))


def test_the_real_feed_takes_one_price_and_a_batch(shop):
    first = shop.post(write_body([observation("150.00")]), idempotency_key="a")
    assert (first.status, first.body["accepted"], first.body["duplicate"]) == (202, 1, False)
    assert Offer.objects.get(wine_id="wn_4417", merchant_id=QUENBY).event_id == first.body["results"][0]["event_id"]
    batch = [observation("151.00"), observation("200.00", wine="wn_5101")]
    second = shop.post(write_body(batch), idempotency_key="b")
    assert (second.status, second.body["accepted"]) == (202, 2)
    assert [result["wine_id"] for result in second.body["results"]] == ["wn_4417", "wn_5101"]


def test_the_real_feed_knows_a_retry_by_its_key(shop):
    body = write_body([observation("150.00")])
    first = shop.post(body, idempotency_key="a")
    again = shop.post(body, idempotency_key="a")
    assert again.body["duplicate"] is True
    assert again.body["results"] == first.body["results"]


def test_a_simulated_merchant_and_the_real_feed_understand_each_other(shop):
    tally = Tally()
    merchant = Merchant(merchant_id=QUENBY, client=shop, tally=tally, run_id="run")
    merchant.send(tagged(new="150.00"))
    merchant.send(tagged(new="150.00"))
    merchant.finish()
    merchant.start()
    merchant.join(SECONDS)
    totals = tally.totals()
    assert (totals.accepted, totals.events, totals.unchanged, totals.refused) == (2, 1, 1, 0)
    assert (totals.retries, totals.duplicates) == (1, 1)
    assert Offer.objects.get(wine_id="wn_4417", merchant_id=QUENBY).event_id in tally.accepted()


def test_fresh_keys_stop_the_demos_old_ones_and_no_other(transactional_db):
    load_catalogue(now=timezone.now())
    quenby = MerchantRow.objects.get(pk=QUENBY)
    theirs, _ = create_key(merchant=quenby, note="their own", now=timezone.now())
    fresh_keys(now=timezone.now())
    keys = fresh_keys(now=timezone.now())
    assert len(keys) == 5
    live = FeedKey.objects.filter(merchant=quenby, revoked_at__isnull=True)
    assert {key.note for key in live} == {"demo", "their own"}
    assert theirs in live


def test_the_clients_path_is_the_feeds(client):
    assert client.get(PATH).status_code == 405
