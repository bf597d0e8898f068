"""Rows 11 to 15 and 17: requests that are signed as Standard Webhooks are, instead of carrying a key."""

import base64
import json
import logging
import math
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs import standard_webhooks
from jobs.standard_webhooks import Signed
from pricing import signing
from pricing.models import FeedAnswer, FeedRate
from tests import cast
from tests.feeds.conftest import ADDRESS, Feed, nothing_written, observation, refusal
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)
OWN = f"{ADDRESS}/mch_082"


@pytest.fixture
def secret(merchant):
    return signing.create_secret(merchant=merchant, note="", now=timezone.now())[1]


def signature(secret, body, *, id_="msg_1", timestamp):
    return standard_webhooks.sign(standard_webhooks.read_secret(secret), Signed(id_, timestamp, ""), body)


def send(secret, body=None, *, id_="msg_1", age=0, address=OWN, **changed):
    """Post as a signing sender does; headers by keyword replace what it would send, None leaves one out."""
    data = body if isinstance(body, bytes) else json.dumps(observation() if body is None else body).encode()
    timestamp = str(math.floor(timezone.now().timestamp()) - age)
    headers = {
        "Webhook_Id": id_,
        "Webhook_Timestamp": timestamp,
        "Webhook_Signature": signature(secret, data, id_=id_, timestamp=timestamp),
        **changed,
    }
    return Feed("").post(data, address=address, **{"Authorization": None, **headers})


def test_the_standards_own_example_is_signed_as_it_says():
    secret = standard_webhooks.read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = Signed("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "")
    given = standard_webhooks.sign(secret, signed, b'{"test": 2432232314}')
    assert given == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_signed_request_is_taken_for_the_merchant_in_the_address(secret, wine):
    answer = send(secret)
    assert answer.status_code == 202, answer.content
    [message] = published()
    assert message["body"]["merchant_id"] == "mch_082"
    assert message["attributes"]["merchant_delivery_id"] == "msg_1"
    assert FeedRate.objects.get().requests == 1
    assert send(secret, id_="msg_2", address=f"{OWN}/").status_code == 202


def test_row_17_the_webhook_id_is_the_id_of_the_delivery(secret, wine):
    answers = [send(secret, age=age).json() for age in (20, 10)]  # a retry is signed anew
    assert [answer["duplicate"] for answer in answers] == [False, True]
    assert answers[0]["event_ids"] == answers[1]["event_ids"]
    assert FeedAnswer.objects.get().key == "msg_1"
    assert refusal(send(secret, observation("154.00"))) == (409, "id_conflict", None)


def test_the_idempotency_key_goes_before_the_webhook_id(secret, wine):
    send(secret, Idempotency_Key="i-1")
    assert FeedAnswer.objects.get().key == "i-1"


def test_both_secrets_work_while_a_merchant_rotates_and_none_that_was_revoked(merchant, secret, wine):
    kept, second = signing.create_secret(merchant=merchant, note="", now=timezone.now())
    assert send(secret).status_code == send(second).status_code == 202
    signing.revoke_secret(secret=kept, now=timezone.now())
    assert send(secret).status_code == 202
    assert refusal(send(second)) == (401, "invalid_credentials", None)


def test_one_right_signature_in_the_list_is_enough(secret, wine):
    body = json.dumps(observation()).encode()
    timestamp = str(math.floor(timezone.now().timestamp()))
    right = signature(secret, body, timestamp=timestamp)
    for around in (f"v1,AAAA {right}", f"{right} v1,AAAA", f"v1a,{right[3:]} {right}", f"  {right} "):
        answer = send(secret, body, Webhook_Timestamp=timestamp, Webhook_Signature=around)
        assert answer.status_code == 202, around


def bad_signatures(secret, body, timestamp):
    right = signature(secret, body, timestamp=timestamp)
    raw = base64.b64decode(right[3:])
    stranger = standard_webhooks.write_secret(b"x" * 32)
    return {
        "not base64": "v1,!!!!",
        "odd length": right[:-1],
        "empty": "",
        "only the scheme": "v1,",
        "without its scheme": right[3:],
        "another scheme": f"v2,{right[3:]}",
        "the asymmetric scheme": f"v1a,{right[3:]}",
        "hex": f"v1,{raw.hex()}",
        "commas between": f"{right},{right}",
        "beyond ASCII": "v1,é€",
        "a stranger's": signature(stranger, body, timestamp=timestamp),
        "for another id": signature(secret, body, id_="msg_2", timestamp=timestamp),
        "for another time": signature(secret, body, timestamp=str(int(timestamp) - 1)),
        "for another body": signature(secret, body + b" ", timestamp=timestamp),
        "a thousand, the last of them right": "v1,AAAA " * 999 + right,
    }


def test_rows_11_and_12_a_wrong_signature_is_refused_like_an_unknown_merchant(secret, wine):
    body = json.dumps(observation()).encode()
    timestamp = str(math.floor(timezone.now().timestamp()))
    for name, wrong in bad_signatures(secret, body, timestamp).items():
        response = send(secret, body, Webhook_Timestamp=timestamp, Webhook_Signature=wrong)
        assert refusal(response) == (401, "invalid_credentials", None), name
        assert response["WWW-Authenticate"] == 'Bearer realm="winecellar feeds"'
        nobody = send(
            secret, body, Webhook_Timestamp=timestamp, Webhook_Signature=wrong, address=f"{ADDRESS}/mch_nobody"
        )
        assert refusal(nobody) == refusal(response)
        assert nobody.json()["error"]["message"] == response.json()["error"]["message"]
    assert nothing_written()


def test_row_12_a_signature_over_json_that_was_written_again_is_a_401(secret, wine):
    sent, signed = json.dumps(observation(), indent=1).encode(), json.dumps(observation()).encode()
    timestamp = str(math.floor(timezone.now().timestamp()))
    wrong = signature(secret, signed, timestamp=timestamp)
    response = send(secret, sent, Webhook_Timestamp=timestamp, Webhook_Signature=wrong)
    assert refusal(response) == (401, "invalid_credentials", None)
    assert nothing_written()


@pytest.mark.parametrize("age", [302, -302])
def test_rows_13_and_14_a_signature_that_is_too_old_or_too_far_ahead_is_a_401(secret, wine, age):
    assert refusal(send(secret, age=age)) == (401, "stale_or_invalid_timestamp", None)
    assert nothing_written()


@pytest.mark.parametrize("age", [298, -298])
def test_a_clock_that_is_nearly_five_minutes_off_is_believed(secret, wine, age):
    assert send(secret, age=age).status_code == 202


def test_the_tolerance_is_the_same_both_ways_and_to_the_second(secret):
    now, five = timezone.now().replace(microsecond=0), timedelta(minutes=5)
    for seconds in (300, -300):
        at = str(int(now.timestamp()) + seconds)
        standard_webhooks.check_timestamp(Signed("", at, ""), now=now, tolerance=five)
        beyond = str(int(at) + (1 if seconds > 0 else -1))
        with pytest.raises(standard_webhooks.TimestampError):
            standard_webhooks.check_timestamp(Signed("", beyond, ""), now=now, tolerance=five)


@pytest.mark.parametrize(
    "text", ["", "now", "-1", "1e30", "1" * 40, "1.5", "٣٣٣٣", "2026-03-14T09:12:04Z", " 1", "0x1"]
)
def test_row_15_a_timestamp_that_is_none_is_a_401_even_when_it_was_signed(secret, wine, text):
    body = json.dumps(observation()).encode()
    wrong = signature(secret, body, timestamp=text)
    response = send(secret, body, Webhook_Timestamp=text, Webhook_Signature=wrong)
    assert refusal(response) == (401, "stale_or_invalid_timestamp", None)
    assert nothing_written()


@pytest.mark.parametrize("name", ["Webhook_Timestamp", "Webhook_Id", "Webhook_Signature"])
def test_a_header_that_is_left_out_is_a_401(secret, wine, name):
    assert send(secret, **{name: None}).status_code == 401
    assert nothing_written()


def test_an_id_that_is_none_is_a_422_when_the_signature_is_right(secret, wine):
    assert refusal(send(secret, id_="x" * 201)) == (422, "invalid_event_id", "webhook-id")
    assert refusal(send(secret, id_="")) == (422, "invalid_event_id", "webhook-id")
    assert nothing_written()


def test_a_signature_needs_the_merchant_in_the_address(secret, wine):
    assert refusal(send(secret, address=ADDRESS)) == (401, "missing_credentials", None)


def test_a_key_counts_before_a_signature(secret, key, wine):
    assert send(secret, Webhook_Signature="v1,AAAA", Authorization=f"Bearer {key}").status_code == 202
    answer = send(secret, Authorization=f"Bearer {key[:-4]}AAAA")
    assert refusal(answer) == (401, "invalid_credentials", None)


def test_row_16_a_key_at_another_merchants_address_is_a_403(feed, secret, wine):
    cast.merchant("083", "Merchant Y")
    response = feed.post(observation(), address=f"{ADDRESS}/mch_083")
    assert refusal(response) == (403, "forbidden_feed", None)
    assert nothing_written()


def test_a_secret_signs_for_its_own_merchant_alone(secret, wine):
    other = cast.merchant("083", "Merchant Y")
    signing.create_secret(merchant=other, note="", now=timezone.now())
    assert refusal(send(secret, address=f"{ADDRESS}/mch_083")) == (401, "invalid_credentials", None)
    assert refusal(send(secret, observation(merchant_id="mch_083"))) == (403, "forbidden_feed", "merchant_id")
    assert nothing_written()


def test_a_signed_body_is_bounded_before_it_is_read(secret, wine, settings):
    settings.FEED_MAX_BODY_BYTES = 50
    assert refusal(send(secret))[:2] == (413, "payload_too_large")


def test_signed_requests_may_have_any_of_the_forms(secret, wine):
    timestamp = str(math.floor(timezone.now().timestamp()))
    event = {"specversion": "1.0", "id": "e-1", "source": "s", "type": "t", "data": observation()}
    body = json.dumps([event]).encode()
    response = Feed("").post(
        body,
        content_type="application/cloudevents-batch+json",
        address=OWN,
        Authorization=None,
        Webhook_Id="msg_1",
        Webhook_Timestamp=timestamp,
        Webhook_Signature=signature(secret, body, timestamp=timestamp),
    )
    assert response.status_code == 202
    assert FeedAnswer.objects.get().key == "msg_1"  # the request's id, not the event's


def test_a_secret_that_cannot_be_read_lets_nobody_in_and_says_so_in_the_log(secret, wine, settings, caplog):
    settings.SECRET_KEY = "another-" * 8
    with caplog.at_level(logging.INFO):
        assert refusal(send(secret)) == (401, "invalid_credentials", None)
    assert "feed.secret_unreadable" in caplog.text
    settings.SECRET_KEY_FALLBACKS = ["development-only-" + "0123456789abcdef" * 3]
    assert send(secret).status_code == 202


def test_no_secret_and_no_signature_is_ever_logged(secret, wine, caplog):
    body = json.dumps(observation()).encode()
    timestamp = str(math.floor(timezone.now().timestamp()))
    right = signature(secret, body, timestamp=timestamp)
    with caplog.at_level(logging.DEBUG):
        assert send(secret, body, Webhook_Timestamp=timestamp, Webhook_Signature=right).status_code == 202
        assert send(secret, body, Webhook_Timestamp=timestamp, Webhook_Signature=right[:-2]).status_code == 401
    assert "feed.invalid_signature" in caplog.text
    assert secret[10:30] not in caplog.text
    assert right[5:30] not in caplog.text
