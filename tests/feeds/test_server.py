"""What only the real web server shows: framing, hanging up, many clients at once. On gunicorn, with our settings."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from pricing.models import FeedAnswer, Offer
from tests.feeds.conftest import observation
from tests.feeds.patience import until_taken
from tests.feeds.server import Server
from tests.pricing.observed import published

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

BODY = json.dumps(observation()).encode()
HOST = b"Host: 127.0.0.1\r\n"


def head(key, *lines, method=b"POST", path=b"/feeds/v1/price-changes", host=HOST):
    """A request's head, as bytes: JSON of our key's merchant, and these lines."""
    common = [b"Authorization: Bearer " + key.encode(), b"Content-Type: application/json"]
    return method + b" " + path + b" HTTP/1.1\r\n" + host + b"\r\n".join([*common, *lines]) + b"\r\n\r\n"


def length(body):
    return b"Content-Length: %d" % len(body)


def test_a_price_goes_in_over_http_and_the_connection_is_kept(server, key, wine):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    for duplicate in (False, True):
        connection.request("POST", "/feeds/v1/price-changes", BODY, {**headers, "Idempotency-Key": "d-1"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert (response.status, answer["duplicate"]) == (202, duplicate)
        assert response.getheader("Connection") == "keep-alive"
    connection.close()
    assert Offer.objects.get().price_usd == 189
    assert len(published()) == 1


def test_nothing_says_which_server_this_is(server, key, wine):
    _, headers, _ = server.post(key, observation())
    assert headers["server"] == "winecellar"
    with server.raw(b"nonsense\r\n\r\n") as conversation:
        said = conversation.read_all().lower()
    assert said.startswith("http/1.1 400")
    assert "gunicorn" not in said
    assert "python" not in said


@pytest.mark.parametrize("method", [b"TRACE", b"CONNECT", b"DELETE", b"BREW"])
def test_rows_18_and_19_other_methods_are_a_405(server, key, method):
    with server.raw(head(key, b"Connection: close", method=method)) as conversation:
        said = conversation.read_all()
    assert said.startswith("HTTP/1.1 405")
    assert "\r\nAllow: POST\r\n" in said


def test_row_25_a_chunked_body_is_a_411_and_ends_the_connection(server, key, wine):
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    with server.raw(head(key, b"Transfer-Encoding: chunked"), chunks) as conversation:
        said = conversation.read_all()
    assert said.startswith("HTTP/1.1 411")
    assert '"length_required"' in said
    assert said.count("HTTP/1.1") == 1
    assert not Offer.objects.exists()


@pytest.mark.parametrize(
    "lines",
    [
        [b"Content-Length: -1"],
        [b"Content-Length: +2"],
        [b"Content-Length: 2", b"Content-Length: 3"],
        [b"Content-Length: 2, 3"],
        [length(BODY), length(BODY)],
        [length(BODY), b"Transfer-Encoding: chunked"],
        [b"Transfer-Encoding: chunked", length(BODY)],
        [b"Content-Length : 2"],
        [b"Content-Length: 0x10"],
        [b"Transfer-Encoding: chunked, chunked"],
        [b"Transfer-Encoding: gzip"],
    ],
)
def test_row_27_framing_in_doubt_is_a_400_and_ends_the_connection(server, key, wine, lines):
    with server.raw(head(key, *lines), BODY) as conversation:
        said = conversation.read_all()
    assert said.startswith("HTTP/1.1 400")
    assert said.count("HTTP/1.1") == 1
    assert not Offer.objects.exists()


def test_row_28_a_body_above_the_limit_is_refused_unread_and_ends_the_connection(server, key, settings):
    declared = b"Content-Length: %d" % (settings.FEED_MAX_BODY_BYTES + 1)
    with server.raw(head(key, declared)) as conversation:  # and not a byte of the body
        said = conversation.read_all()
    assert said.startswith("HTTP/1.1 413")
    assert "\r\nConnection: close\r\n" in said
    assert '"payload_too_large"' in said


def test_row_28_the_answer_arrives_although_the_body_was_sent(server, key, settings):
    body = b" " * (settings.FEED_MAX_BODY_BYTES + 1)
    status, _, answer = server.post(key, body)
    assert (status, answer["error"]["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("wrong", [True, False])
def test_row_104_a_body_that_waits_to_be_asked_for_is_asked_for_only_with_a_good_key(server, key, wine, wrong):
    sent = key[:-1] + ("A" if key[-1] != "A" else "B") if wrong else key
    with server.raw(head(sent, length(BODY), b"Expect: 100-continue")) as conversation:
        first = conversation.read_head()
        if wrong:
            assert first.startswith("http/1.1 401")
            assert "connection: close" in first
            assert "invalid_credentials" in conversation.read_all()
        else:
            assert first == "http/1.1 100 continue\r\n\r\n"
            conversation.send(BODY)
            assert conversation.read_head().startswith("http/1.1 202")


def test_another_expectation_is_a_417(server, key):
    with server.raw(head(key, length(BODY), b"Expect: tea"), BODY) as conversation:
        assert conversation.read_all().startswith("HTTP/1.1 417")


def test_row_105_a_header_of_9000_bytes_is_a_431(server, key, wine):
    with server.raw(head(key, length(BODY), b"X-Long: " + b"x" * 9_000), BODY) as conversation:
        assert conversation.read_all().startswith("HTTP/1.1 431")


def test_row_8_a_key_of_100_kb_is_a_431(server, key, wine):
    with server.raw(head(key + "a" * 100_000, length(BODY))) as conversation:
        assert conversation.read_head().startswith("http/1.1 431")


def test_an_address_of_5000_bytes_is_a_414(server, key):
    with server.raw(head(key, length(BODY), path=b"/feeds/v1/price-changes?" + b"x" * 5_000), BODY) as conversation:
        assert conversation.read_all().startswith("HTTP/1.1 414")


@pytest.mark.parametrize("host", [b"Host: evil.example\r\n", b"Host: 127.0.0.1, evil.example\r\n", b"Host: \r\n"])
def test_row_107_a_bad_host_is_a_400(server, key, wine, host):
    with server.raw(head(key, length(BODY), b"Connection: close", host=host), BODY) as conversation:
        assert conversation.read_all().startswith("HTTP/1.1 400")
    assert not Offer.objects.exists()


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset*=bogus''x", "application/json; charset*=utf-8''%ff", "a/b;" + ";" * 4000],
)
def test_no_content_type_is_a_500(server, key, wine, content_type):
    status, *_ = server.post(key, observation(), Content_Type=content_type)
    assert status in (400, 415)
    assert not Offer.objects.exists()


def test_row_10_a_key_in_the_address_is_in_no_log(server, key, wine):
    path = b"/feeds/v1/price-changes?key=" + key.encode()
    with server.raw(head(key, length(BODY), b"Connection: close", path=path), BODY) as conversation:
        assert conversation.read_all().startswith("HTTP/1.1 401")
    log = server.log.read_text()
    assert "key_in_address" in log
    assert key[-20:] not in log


def test_a_client_that_hangs_up_in_its_body_harms_nobody(server, key, wine):
    for _ in range(20):  # more than the server has threads
        server.raw(head(key, length(BODY)), BODY[:10]).close()
    status, *_ = server.post(key, observation())
    assert status == 202


def test_a_client_that_hangs_up_before_the_answer_may_come_again(server, key, wine):
    """The price may or may not have been taken; the retry says the same either way."""
    server.raw(head(key, length(BODY), b"Idempotency-Key: d-1"), BODY).close()
    status, _, answer = server.post(key, BODY, Idempotency_Key="d-1")
    assert (status, answer["results"][0]["applied"]) == (202, True)
    assert len(published()) == 1
    assert answer["event_ids"] == [published()[0]["event_id"]]


def test_silent_clients_are_given_up_and_then_others_are_served(_server, tmp_path, transactional_db, key, wine):
    """Clients that begin a request and say no more would hold every thread for ever."""
    few_threads = Server(tmp_path / "stderr.log", WEB_THREADS="2", WEB_SILENCE_SECONDS="1")
    try:
        silent = [few_threads.raw(head(key, length(BODY)), BODY[:10]) for _ in range(2)]
        silent += [few_threads.raw(b"POST /feeds/v1/price-changes HTTP/1.1\r\nHost: ") for _ in range(2)]
        status, *_ = few_threads.post(key, observation())
        assert status == 202
        for conversation in silent:
            conversation.close()
    finally:
        few_threads.stop()


def test_a_connection_that_died_costs_at_most_one_503(_server, tmp_path, transactional_db, key, wine):
    """One that was used within the last second is not asked whether it lives; it is if the machine was slow here."""
    one_thread = Server(tmp_path / "stderr.log", WEB_THREADS="1")
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    try:
        assert one_thread.post(key, observation())[0] == 202
        with connection.cursor() as cursor:
            cursor.execute(others, [connection.connection.info.backend_pid])
        first, headers, _ = one_thread.post(key, observation("154.00"))
        assert first == 202 or (first, headers["retry-after"]) == (503, "5")
        assert one_thread.post(key, observation("154.00"))[0] == 202
    finally:
        one_thread.stop()


def patiently(send):
    return until_taken(send, lambda answer: answer[0], lambda answer: answer[1].get("retry-after"))


def test_f27_64_copies_of_one_request_at_once_have_one_effect(server, key, wine):
    together = threading.Barrier(64)

    def send(_):
        together.wait(60)
        return patiently(lambda: server.post(key, BODY, Idempotency_Key="d-1"))

    with ThreadPoolExecutor(64) as clients:
        answers = list(clients.map(send, range(64)))
    assert [status for status, *_ in answers] == [202] * 64
    bodies = [answer for *_, answer in answers]
    assert sorted(answer["duplicate"] for answer in bodies) == [False] + [True] * 63
    assert len({tuple(answer["event_ids"]) for answer in bodies}) == 1
    assert (Offer.objects.count(), FeedAnswer.objects.count(), len(published())) == (1, 1, 1)


def test_many_prices_of_one_wine_at_once_are_all_taken_in_one_order(server, key, wine):
    """Without an id each is its own request: prices differ, times ascend, and the latest stands."""
    together = threading.Barrier(32)
    sent = [observation(f"{100 + n}.00", occurred_at=f"2026-03-14T09:{n:02}:00Z") for n in range(32)]

    def send(document):
        together.wait(60)
        return patiently(lambda: server.post(key, document))

    with ThreadPoolExecutor(32) as clients:
        answers = list(clients.map(send, sent))
    assert [status for status, *_ in answers] == [202] * 32
    assert Offer.objects.get().price_usd == 131
    log = published()
    assert len(log) == 32
    changes = [message["body"] for message in log if message["type"] == "wine.price_changed"]
    assert [body["occurred_at"] for body in changes] == sorted(body["occurred_at"] for body in changes)
    olds = [body["old_price_usd"] for body in changes]
    assert olds == [None, *[body["new_price_usd"] for body in changes[:-1]]]


def test_clients_that_do_not_hang_up_keep_nobody_else_waiting(server, key, wine):
    """More of them than one after another could be waited for before the deadline of the request behind them."""
    ends = head(key, length(BODY), b"Connection: close")
    lingering = [server.raw(ends, BODY) for _ in range(4)] + [server.raw(b"nonsense\r\n\r\n") for _ in range(3)]
    for conversation in lingering:
        assert conversation.read_head().startswith(("http/1.1 202", "http/1.1 400"))
    status, *_ = server.request("GET", timeout=6)  # seven waits of two seconds would be fourteen
    assert status == 405
    for conversation in lingering:
        conversation.close()
