"""Every way in which the feeds say no, to prices and to catalogue files: the code, its status, what it means. Pure.

The one list of them: docs/feeds.md, the OpenAPI document and its page say what stands here, and a test holds it
against every FeedError in the source.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

_AHEAD = f"{settings.FEED_CLOCK_TOLERANCE.total_seconds() / 60:g} minutes"
_AWAY = f"{settings.FEED_SIGNATURE_TOLERANCE.total_seconds() / 60:g} minutes"
_BYTES, _BATCH = f"{settings.FEED_MAX_BODY_BYTES:,} bytes", f"{settings.FEED_MAX_BATCH:,} observations"
_FILE = f"(a catalogue file: {settings.CATALOGUE_MAX_BYTES:,})"


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    meaning: str


REFUSALS: dict[str, Refusal] = {
    "invalid_length": Refusal(400, "`Content-Length` is not a number"),
    "incomplete_body": Refusal(400, "the body ended before its `Content-Length`, or took too long"),
    "invalid_encoding": Refusal(400, "not UTF-8, or with a byte order mark"),
    "invalid_json": Refusal(400, "not JSON; the message says where. `NaN`, comments and trailing commas are not JSON"),
    "duplicate_key": Refusal(400, "an object has one key twice"),
    "too_deep": Refusal(400, f"nested deeper than {settings.FEED_MAX_DEPTH} levels"),
    "missing_credentials": Refusal(
        401, "no `Authorization` header, and no signature at an address with your merchant id"
    ),
    "invalid_credentials": Refusal(
        401, "the key is unknown, wrong, revoked or expired, or no signature is right; we do not say which"
    ),
    "stale_or_invalid_timestamp": Refusal(
        401, f"`webhook-timestamp` is no number, or more than {_AWAY} away from our clock"
    ),
    "key_in_address": Refusal(401, "a key stands in the address; replace it"),
    "https_required": Refusal(403, "sent over plain http; the key should be replaced"),
    "forbidden_feed": Refusal(403, "`merchant_id`, or the one in the address, is not the one of this key or secret"),
    "unknown_file": Refusal(
        404, "you have sent no catalogue file with that number, or its report is too old to be kept"
    ),
    "method_not_allowed": Refusal(405, "`Allow` says which methods the address takes"),
    "id_conflict": Refusal(409, "this id was used with another body"),
    "length_required": Refusal(411, "no `Content-Length`; chunked bodies are not taken"),
    "payload_too_large": Refusal(413, f"more than {_BYTES} {_FILE}; we hang up without reading them"),
    "batch_too_large": Refusal(413, f"more than {_BATCH}"),
    "unsupported_media_type": Refusal(
        415, "not JSON or one of the other forms in UTF-8, or compressed; for a catalogue file, none of its types"
    ),
    "expected_object": Refusal(422, "the body, or an observation, or an event, is not an object"),
    "invalid_observations": Refusal(422, "an empty list, no list, or a list beside a single observation"),
    "invalid_product": Refusal(
        422,
        "under `unreadable` alone: a shop's product without its number, or with a field of another kind; `field` says"
        " which",
    ),
    "invalid_cloudevent": Refusal(422, "an attribute of the event is missing or wrong; `field` says which"),
    "invalid_wine_id": Refusal(422, "missing, or not of the form of a wine id"),
    "unknown_wine": Refusal(422, "we do not list it, or no longer"),
    "invalid_name": Refusal(422, "a catalogue file's `name` is too long or not printable"),
    "invalid_price": Refusal(422, "see above"),
    "invalid_currency": Refusal(422, "missing, or not the ISO 4217 code of a currency in use"),
    "invalid_tax": Refusal(422, "neither `included` nor `excluded`"),
    "invalid_withdrawn": Refusal(422, "`withdrawn` is neither true nor false, or comes with a price"),
    "invalid_time": Refusal(422, "missing (but for a file's `as_of`), or not RFC 3339 with an offset"),
    "time_out_of_range": Refusal(422, f"more than {_AHEAD} ahead, or before {settings.FEED_EARLIEST}"),
    "invalid_event_id": Refusal(
        422,
        "the `Idempotency-Key`, `webhook-id`, `delivery_id` or event's `id` is missing, empty, too long or not"
        " printable",
    ),
    "forbidden_character": Refusal(422, "NUL, or half of a surrogate pair"),
    "rate_limited": Refusal(
        429,
        f"more than {settings.FEED_REQUESTS_PER_MINUTE:,} requests in a minute; wait for `Retry-After` seconds, or"
        " send several prices in one",
    ),
    "unavailable": Refusal(503, "we cannot take prices now; send the same again after `Retry-After` seconds"),
}

# Of a shop's signed webhook these are no refusals: the answer is 202 all the same, and names them under `unreadable`.
UNREADABLE = (
    *("invalid_encoding", "invalid_json", "duplicate_key", "too_deep", "forbidden_character", "expected_object"),
    *("invalid_product", "invalid_price", "invalid_time", "time_out_of_range", "batch_too_large"),
    *("unsupported_media_type", "invalid_event_id"),
)
