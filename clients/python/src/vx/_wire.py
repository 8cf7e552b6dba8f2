"""The Connect protocol: requests and responses as bytes, for any HTTP client."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Dict, Generic, List, Mapping, Optional, Tuple, Type, TypeVar, Union

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
#: The largest response, and the largest message of a stream, in bytes.
MAX_BYTES = 64 * 2**20

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


def check_unary(response: httpx.Response, body: bytes) -> None:
    """Raises the error of a response."""
    content_type = response.headers.get("content-type", "")
    if response.status_code == 200 and content_type == "application/proto":
        return
    raise error_of(_json_of(body) if content_type.startswith("application/json") else None, response)


def _json_of(data: bytes) -> object:
    """Returns None if the data is not JSON, or is nested more deeply than Python can read."""
    try:
        value: object = json.loads(data)
        return value
    except (ValueError, RecursionError):
        return None


def invalid_response(problem: str, response: httpx.Response) -> ServerError:
    return ServerError(f"the response is not valid: {problem}", code="internal", headers=response.headers)


class Body:
    """Puts the bytes of a response together."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, data: bytes, response: httpx.Response) -> None:
        if len(self.data) + len(data) > MAX_BYTES:
            raise invalid_response(f"it has more than {MAX_BYTES} bytes", response)
        self.data += data


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
    message = wire.get("message")
    return cls(
        message if isinstance(message, str) else code,
        code=code,
        reason=reason,
        details=details,
        metadata=dict(info.metadata) if info is not None else {},
        headers=headers,
    )


def _details_of(wire: object) -> List[Message]:
    details = (_detail_of(one) for one in wire) if isinstance(wire, list) else ()
    return [detail for detail in details if detail is not None]


def _detail_of(wire: object) -> Optional[Message]:
    """None for a detail that this client does not know or cannot read."""
    if not isinstance(wire, dict):
        return None
    name, value = wire.get("type"), wire.get("value")
    known = _DETAILS.get(name) if isinstance(name, str) else None
    if known is None or not isinstance(value, str):
        return None
    try:
        return known.FromString(base64.b64decode(value + "=" * (-len(value) % 4)))
    except (ValueError, DecodeError):
        return None


def error_of_transport(error: Union[httpx.HTTPError, TimeoutError]) -> VxError:
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return TimedOutError(f"the time limit of the call passed: {type(error).__name__}", code="deadline_exceeded")
    if isinstance(error, httpx.LocalProtocolError):
        # Its text can quote a header of the request.
        return InvalidRequestError("the request is not valid HTTP, such as one of its headers", code="invalid_argument")
    return ConnectionFailedError(f"no complete response: {type(error).__name__}: {error}", code="unknown")


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
            frame = self._next(response)
            if frame is None:
                return messages
            flags, message = frame
            if flags & COMPRESSED:
                raise invalid_response("a message is compressed", response)
            if not flags & END_OF_STREAM:
                messages.append(message)
                continue
            self.is_complete = True
            end = _json_of(message)
            if not isinstance(end, dict):
                raise invalid_response("its last message is no JSON object", response)
            if end.get("error") is not None:
                raise error_of(end["error"], response)

    def _next(self, response: httpx.Response) -> Optional[Tuple[int, bytes]]:
        if len(self._buffer) < 5:
            return None
        size = int.from_bytes(self._buffer[1:5], "big")
        if size > MAX_BYTES:
            raise invalid_response(f"a message has more than {MAX_BYTES} bytes", response)
        end = 5 + size
        if len(self._buffer) < end:
            return None
        frame = self._buffer[0], bytes(self._buffer[5:end])
        del self._buffer[:end]
        return frame

    def check_end(self) -> None:
        if not self.is_complete:
            raise ConnectionFailedError("the stream ended without its last message", code="unknown")
