"""Rows 18 to 28: what surrounds the body. What only a real server can show is in test_server.py."""

import io

import pytest
from django.conf import settings
from django.test import Client

from tests.feeds.conftest import ADDRESS, nothing_written, observation, refusal

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_rows_18_and_19_other_methods_are_a_405_that_names_post(feed, method):
    response = feed.client.generic(method, ADDRESS, headers={"Authorization": f"Bearer {feed.key}"})
    assert refusal(response) == (405, "method_not_allowed", None)
    assert response["Allow"] == "POST"


def test_the_method_is_checked_before_the_credentials(client):
    assert client.get(ADDRESS).status_code == 405


def test_row_20_a_slash_at_the_end_changes_nothing(feed, wine):
    response = feed.client.post(
        f"{ADDRESS}/", observation(), content_type="application/json", headers={"Authorization": f"Bearer {feed.key}"}
    )
    assert response.status_code == 202


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json; charset=nonsense",
        "application/json; charset=latin-1",
        "application/jsonx",
        "application/json, text/plain",
        "text/json",
    ],
)
def test_rows_21_to_23_another_media_type_is_a_415(feed, wine, content_type):
    assert refusal(feed.post(observation(), content_type=content_type)) == (415, "unsupported_media_type", None)
    assert nothing_written()


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
def test_json_in_utf_8_is_taken_however_it_is_spelt(feed, wine, content_type):
    assert feed.post(observation(), content_type=content_type).status_code == 202


def test_a_compressed_body_is_a_415(feed, wine):
    assert refusal(feed.post(observation(), Content_Encoding="gzip"))[:2] == (415, "unsupported_media_type")
    assert feed.post(observation(), Content_Encoding="identity").status_code == 202


def lengths(feed, declared, **environ):
    headers = {"HTTP_AUTHORIZATION": f"Bearer {feed.key}", "CONTENT_TYPE": "application/json"}
    return feed.client.generic("POST", ADDRESS, b"{}", **headers, CONTENT_LENGTH=declared, **environ)


def test_row_25_a_body_without_length_is_a_411(feed):
    assert refusal(lengths(feed, "")) == (411, "length_required", None)
    response = feed.client.generic("POST", ADDRESS, b"{}", HTTP_TRANSFER_ENCODING="chunked")
    assert refusal(response) == (411, "length_required", None)


@pytest.mark.parametrize("declared", ["-1", "+2", "1_0", "two", "2, 2", "２"])
def test_row_27_a_length_that_is_no_number_is_a_400(feed, declared):
    assert refusal(lengths(feed, declared)) == (400, "invalid_length", None)


def test_row_28_one_byte_above_the_limit_is_a_413_and_the_limit_itself_is_not(feed, wine):
    limit = settings.FEED_MAX_BODY_BYTES
    body = b'{"observations":[]}'.ljust(limit)
    assert refusal(feed.post(body)) == (422, "invalid_observations", "observations")
    assert refusal(feed.post(body + b" ")) == (413, "payload_too_large", None)
    assert refusal(lengths(feed, "9" * 6000)) == (413, "payload_too_large", None)


def test_the_length_is_checked_before_the_credentials(client):
    response = client.post(ADDRESS, b" " * (settings.FEED_MAX_BODY_BYTES + 1), content_type="application/json")
    assert response.status_code == 413


class Broken:
    """A sender that goes away."""

    def read(self, size):
        raise ConnectionResetError

    readline = read


def test_a_body_whose_sender_goes_away_is_a_400_for_whoever_still_listens(feed, wine):
    assert refusal(lengths(feed, "2", **{"wsgi.input": Broken()})) == (400, "incomplete_body", None)
    assert nothing_written()


def test_a_body_that_ends_early_is_a_400(feed, wine):
    response = lengths(feed, "50", **{"wsgi.input": io.BytesIO(b"{}")})
    assert refusal(response) == (400, "incomplete_body", None)
    assert nothing_written()


def test_every_answer_is_kept_out_of_caches_and_carries_the_request_id(feed, wine):
    for response in (feed.post(observation()), feed.post(b"{")):
        assert response["Cache-Control"] == "no-store"
        assert response.json().get("request_id", response["X-Request-ID"]) == response["X-Request-ID"]
    assert feed.post(observation(), X_Request_ID="req-of-the-proxy").json()["request_id"] == "req-of-the-proxy"


def test_no_csrf_token_is_needed(key, wine):
    strict = Client(enforce_csrf_checks=True)
    headers = {"Authorization": f"Bearer {key}"}
    assert strict.post(ADDRESS, observation(), content_type="application/json", headers=headers).status_code == 202
