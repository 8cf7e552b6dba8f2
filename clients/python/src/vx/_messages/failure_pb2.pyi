import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Failure(_message.Message):
    __slots__ = ("time", "key_id", "method", "model", "upstream", "status", "code", "message", "latency_ms", "request_id", "omitted")
    TIME_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    key_id: str
    method: str
    model: str
    upstream: str
    status: int
    code: str
    message: str
    latency_ms: int
    request_id: str
    omitted: int
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key_id: _Optional[str] = ..., method: _Optional[str] = ..., model: _Optional[str] = ..., upstream: _Optional[str] = ..., status: _Optional[int] = ..., code: _Optional[str] = ..., message: _Optional[str] = ..., latency_ms: _Optional[int] = ..., request_id: _Optional[str] = ..., omitted: _Optional[int] = ...) -> None: ...

class ListFailuresRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "key_id", "model", "code", "to")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    key_id: str
    model: str
    code: str
    to: _timestamp_pb2.Timestamp
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., key_id: _Optional[str] = ..., model: _Optional[str] = ..., code: _Optional[str] = ..., to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., **kwargs) -> None: ...

class ListFailuresResponse(_message.Message):
    __slots__ = ("failures", "next_page_token")
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    failures: _containers.RepeatedCompositeFieldContainer[Failure]
    next_page_token: str
    def __init__(self, failures: _Optional[_Iterable[_Union[Failure, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CountFailuresRequest(_message.Message):
    __slots__ = ("group_by", "tz", "key_id", "model", "to")
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    TZ_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    group_by: str
    tz: str
    key_id: str
    model: str
    to: _timestamp_pb2.Timestamp
    def __init__(self, group_by: _Optional[str] = ..., tz: _Optional[str] = ..., key_id: _Optional[str] = ..., model: _Optional[str] = ..., to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., **kwargs) -> None: ...

class CountFailuresResponse(_message.Message):
    __slots__ = ("counts", "counted_from")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FROM_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedCompositeFieldContainer[FailureCount]
    counted_from: _timestamp_pb2.Timestamp
    def __init__(self, counts: _Optional[_Iterable[_Union[FailureCount, _Mapping]]] = ..., counted_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class FailureCount(_message.Message):
    __slots__ = ("start", "code", "calls")
    START_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    start: _timestamp_pb2.Timestamp
    code: str
    calls: int
    def __init__(self, start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., code: _Optional[str] = ..., calls: _Optional[int] = ...) -> None: ...
