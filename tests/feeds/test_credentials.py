"""Rows 1 to 10 and 16 of the table of bad inputs: who may send what."""

import json
import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from pricing import keys
from tests import cast
from tests.feeds.conftest import ADDRESS, Feed, nothing_written, observation, refusal

pytestmark = pytest.mark.django_db


def test_row_1_no_authorization_is_a_401_that_says_how(feed, wine):
    response = feed.post(observation(), Authorization=None)
    assert refusal(response) == (401, "missing_credentials", None)
    assert response["WWW-Authenticate"] == 'Bearer realm="winecellar feeds"'
    assert nothing_written()


def bad_credentials(merchant, key):
    now = timezone.now()
    other = cast.merchant("083", "Merchant Y")
    old, revoked = keys.create_key(merchant=other, note="", now=now)
    keys.revoke_key(key=old, now=now)
    _, expired = keys.create_key(merchant=other, note="", now=now, expires_at=now - timedelta(days=1))
    flipped = key[:-1] + ("A" if key[-1] != "A" else "B")
    return {
        "row 2 wrong scheme": f"Basic {key}",
        "row 3 unknown key": f"Bearer wck_00000000_{'a' * 43}",
        "row 4 right prefix, wrong secret": f"Bearer {flipped}",
        "row 5 revoked": f"Bearer {revoked}",
        "row 6 expired": f"Bearer {expired}",
        "row 8 trailing space": f"Bearer {key} ",
        "row 8 NUL": f"Bearer {key}\0",
        "row 8 100 kB": f"Bearer {key}{'a' * 100_000}",
    }


def test_rows_2_to_8_get_a_401_of_identical_bytes(feed, merchant, key, wine):
    answers = set()
    for row, header in bad_credentials(merchant, key).items():
        response = feed.post(observation(), Authorization=header, X_Request_ID="req_the_same_for_all")
        assert refusal(response) == (401, "invalid_credentials", None), row
        headers = sorted((name, value) for name, value in response.headers.items())
        answers.add(json.dumps([response.status_code, headers, response.content.decode()]))
    assert len(answers) == 1
    assert 'error="invalid_token"' in answers.pop().replace('\\"', '"')
    assert nothing_written()


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("encode", [str, lambda key: key.replace("_", "%5f")])
def test_row_10_a_key_in_the_address_is_a_401_and_in_no_log(feed, key, wine, caplog, has_header, encode):
    headers = {"Authorization": f"Bearer {key}"} if has_header else {}
    with caplog.at_level(logging.DEBUG):
        response = feed.client.post(
            f"{ADDRESS}?key={encode(key)}", json.dumps(observation()), content_type="application/json", headers=headers
        )
    assert refusal(response) == (401, "key_in_address", None)
    assert "WWW-Authenticate" in response
    secret = key[-20:]  # which may hold a line itself
    assert "feed.refused" in caplog.text
    assert secret not in caplog.text
    assert encode(secret) not in caplog.text
    assert nothing_written()


def test_no_key_is_ever_logged(feed, merchant, key, wine, caplog):
    with caplog.at_level(logging.DEBUG):
        for header in bad_credentials(merchant, key).values():
            feed.post(observation(), Authorization=header)
        assert feed.post(observation()).status_code == 202
    assert key[-20:-2] not in caplog.text
    assert key.split("_")[1] in caplog.text  # the prefix is, so that somebody can be told which key fails


@pytest.mark.parametrize("where", ["", "observations[1]."])
def test_row_16_another_merchants_id_is_a_403(feed, wine, where):
    cast.merchant("083", "Merchant Y")
    foreign = observation(merchant_id="mch_083")
    body = {"observations": [observation(merchant_id="mch_082"), foreign]} if where else foreign
    assert refusal(feed.post(body)) == (403, "forbidden_feed", f"{where}merchant_id")
    assert nothing_written()


def test_row_16_also_for_the_batch_as_a_whole_and_for_what_is_no_id(feed, wine):
    for merchant_id in ("mch_083", "", None, 82, ["mch_082"]):
        body = {"merchant_id": merchant_id, "observations": [observation()]}
        assert refusal(feed.post(body)) == (403, "forbidden_feed", "merchant_id")
    assert nothing_written()


def test_the_own_merchant_id_is_welcome(feed, wine):
    assert feed.post(observation(merchant_id="mch_082")).status_code == 202
    body = {"merchant_id": "mch_082", "observations": [observation(merchant_id="mch_082")]}
    assert feed.post(body).status_code == 202


def test_both_keys_work_while_a_merchant_rotates(feed, merchant, wine):
    _, second = keys.create_key(merchant=merchant, note="", now=timezone.now())
    assert feed.post(observation()).status_code == 202
    assert Feed(second).post(observation()).status_code == 202


def test_credentials_are_checked_before_the_body_is_looked_at(feed, wine, monkeypatch):
    def fails(*_):
        raise AssertionError("the body was read")

    monkeypatch.setattr("pricing.feeds.checks.read_body", fails)
    response = feed.post(b"\xff not json", Authorization=f"Bearer wck_00000000_{'a' * 43}", content_type="text/plain")
    assert refusal(response)[:2] == (401, "invalid_credentials")


def test_over_plain_http_where_https_is_required_nothing_is_taken_and_nothing_redirected(client, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_REDIRECT_EXEMPT = [r"^feeds/"]
    answer = client.post("/feeds/v1/price-changes", "{}", "application/json")
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "https_required"
    assert client.post("/feeds/v1/price-changes", "{}", "application/json", secure=True).status_code == 401
