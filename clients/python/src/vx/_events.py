"""Events: their data, and the requests of webhooks."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import hmac
import json
import time
from typing import Mapping, Optional

from google.protobuf import json_format
from google.protobuf.message import Message

from ._event_data import EVENT_DATA
from ._messages.event_pb2 import Event

_TOLERANCE = 5 * 60


class WebhookVerificationError(Exception):
    """A request that no server signed with the secret, or that is more than five minutes old."""


def event_data(event: Event) -> Optional[Message]:
    """The data of an event as the message of its type, such as ``BalanceLowEvent``.

    None if the server is newer and this client does not know the type.
    """
    message = EVENT_DATA.get(event.type)
    if message is None:
        return None
    return json_format.ParseDict(json_format.MessageToDict(event.data), message(), ignore_unknown_fields=True)


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: str) -> Event:
    """The event of a request that a webhook got. Raises WebhookVerificationError if its signature is not of this secret.

    The body is as it arrived: parsed and written again, it may differ.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id, sent_at = given["webhook-id"], given["webhook-timestamp"]
        signatures = given["webhook-signature"].split()
        age = abs(time.time() - int(sent_at))
    except (KeyError, ValueError) as error:
        raise WebhookVerificationError(f"a header is missing or malformed: {error}") from error
    if age > _TOLERANCE:
        raise WebhookVerificationError("the request is more than five minutes old, or a clock is wrong")
    try:
        key = base64.b64decode(secret[len("whsec_") :] if secret.startswith("whsec_") else secret, validate=True)
    except binascii.Error as error:
        raise ValueError("the secret of the webhook is malformed") from error
    signed = f"{id}.{sent_at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    if not any([hmac.compare_digest(expected, signature.encode()) for signature in signatures]):
        raise WebhookVerificationError("no signature is of this secret")
    received = json.loads(body)
    event = Event(
        id=received["id"],
        type=received["type"],
        created_at=datetime.datetime.fromisoformat(received["timestamp"].replace("Z", "+00:00")),
        account_id=received["account_id"],
        seq=received["seq"],
    )
    event.data.update(received["data"])
    return event
