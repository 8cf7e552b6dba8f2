"""The Connect protocol: requests and responses as bytes, for any HTTP client."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Dict, Generic, List, Mapping, Optional, Tuple, Type, TypeVar

import httpx
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2

from ._errors import (
    AuthenticationError,
    ConnectionFailedError,
    InvalidRequestError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    TimedOutError,
    VxError,
)
from ._reasons import CLASSES

Response = TypeVar("Response", bound=Message)

#: The flag of the last message of a stream, which has the error of the call.
END_OF_STREAM = 2
COMPRESSED = 1

#: The class of an error without a reason that this client knows: of a proxy, or of a newer server.
_CLASS_OF_CODE: Dict[str, Type[VxError]] = {
    "invalid_argument": InvalidRequestError,
    "not_found": InvalidRequestError,
    "failed_precondition": InvalidRequestError,
    "aborted": InvalidRequestError,
    "unauthenticated": AuthenticationError,
    "permission_denied": PermissionDeniedError,
    "resource_exhausted": RateLimitError,
}

#: The codes that the Connect protocol gives to responses of proxies.
_CODE_OF_STATUS = {
    400: "internal",
    401: "unauthenticated",
    403: "permission_denied",
    404: "unimplemented",
    429: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}

_DETAILS: Dict[str, Type[Message]] = {
    f"google.rpc.{name}": getattr(error_details_pb2, name)
    for name in ("ErrorInfo", "BadRequest", "RetryInfo", "QuotaFailure", "PreconditionFailure", "Help")
}


@dataclass(frozen=True)
class Method(Generic[Response]):
    """A method of the server.

    A repetition of a call has an effect: "read" changes nothing; "keyed" is charged once because it has an idempotency
    key; "unkeyed" is charged unless the server says why it failed; "write" could change something twice.
    """

    path: str
    request: Type[Message]
    response: Type[Response]
    effect: str
    is_stream: bool = False

    def body(self, fields: Mapping[str, Any]) -> bytes:
        names = {"from_": "from"}
        message = self.request(**{names.get(name, name): value for name, value in fields.items()})
        data = message.SerializeToString()
        return bytes(1) + len(data).to_bytes(4, "big") + data if self.is_stream else data

    @property
    def content_type(self) -> str:
        return "application/connect+proto" if self.is_stream else "application/proto"

    def parse(self, data: bytes) -> Response:
        try:
            return self.response.FromString(data)
        except DecodeError as error:
            raise ConnectionFailedError(f"the response is not complete: {error}", code="unknown") from error


def check_unary(response: httpx.Response) -> None:
    """Raises the error of a response. Its body was read."""
    content_type = response.headers.get("content-type", "")
    if response.status_code == 200 and content_type == "application/proto":
        return
    wire: object = None
    if content_type.startswith("application/json"):
        try:
            wire = json.loads(response.content)
        except ValueError:
            pass
    raise error_of(wire, response)


def check_stream(response: httpx.Response) -> None:
    """Raises the error of a response that is no stream."""
    content_type = response.headers.get("content-type", "")
    if response.status_code != 200 or content_type != "application/connect+proto":
        raise error_of(None, response)


def error_of(wire: object, response: httpx.Response) -> VxError:
    """The error of the wire, or of a response that the server did not make."""
    headers = response.headers
    if not isinstance(wire, dict) or not isinstance(wire.get("code"), str):
        code = _CODE_OF_STATUS.get(response.status_code, "unknown")
        cls = _CLASS_OF_CODE.get(code, ServerError)
        return cls(f"HTTP {response.status_code}", code=code, headers=headers)
    code = wire["code"]
    details = _details_of(wire.get("details"))
    info = next((one for one in details if isinstance(one, error_details_pb2.ErrorInfo)), None)
    reason = info.reason.lower() if info is not None and info.domain == "vx" else None
    cls = CLASSES.get(reason or "", _CLASS_OF_CODE.get(code, ServerError))
    return cls(
        str(wire.get("message", code)),
        code=code,
        reason=reason,
        details=details,
        metadata=dict(info.metadata) if info is not None else {},
        headers=headers,
    )


def _details_of(wire: object) -> List[Message]:
    details: List[Message] = []
    for one in wire if isinstance(wire, list) else []:
        known = _DETAILS.get(one.get("type", ""))
        if known is not None:
            value = one.get("value", "")
            details.append(known.FromString(base64.b64decode(value + "=" * (-len(value) % 4))))
    return details


def error_of_transport(error: httpx.HTTPError) -> VxError:
    if isinstance(error, httpx.TimeoutException):
        return TimedOutError(f"the time limit of the call passed: {error!r}", code="deadline_exceeded")
    return ConnectionFailedError(f"no complete response: {error!r}", code="unknown")


class Frames:
    """Takes the messages of a stream out of its bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.is_complete = False

    def feed(self, data: bytes, response: httpx.Response) -> List[bytes]:
        """The messages that are complete now. Raises the error of the last message."""
        self._buffer += data
        messages: List[bytes] = []
        while True:
            frame = self._next()
            if frame is None:
                return messages
            flags, message = frame
            if flags & COMPRESSED:
                raise ServerError("the server compressed a message", code="internal", headers=response.headers)
            if not flags & END_OF_STREAM:
                messages.append(message)
                continue
            self.is_complete = True
            end = json.loads(message)
            if end.get("error") is not None:
                raise error_of(end["error"], response)

    def _next(self) -> Optional[Tuple[int, bytes]]:
        if len(self._buffer) < 5:
            return None
        end = 5 + int.from_bytes(self._buffer[1:5], "big")
        if len(self._buffer) < end:
            return None
        frame = self._buffer[0], bytes(self._buffer[5:end])
        del self._buffer[:end]
        return frame

    def check_end(self) -> None:
        if not self.is_complete:
            raise ConnectionFailedError("the stream ended without its last message", code="unknown")
