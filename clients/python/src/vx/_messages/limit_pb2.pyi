import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Limit(_message.Message):
    __slots__ = ("id", "metric", "window", "amount", "model", "per", "temporary_amount", "temporary_until", "owner", "owner_id", "spent", "held", "remaining", "resets_at", "counted_since", "set_by_operator")
    ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    TEMPORARY_AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TEMPORARY_UNTIL_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    RESETS_AT_FIELD_NUMBER: _ClassVar[int]
    COUNTED_SINCE_FIELD_NUMBER: _ClassVar[int]
    SET_BY_OPERATOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    metric: str
    window: str
    amount: int
    model: str
    per: str
    temporary_amount: int
    temporary_until: _timestamp_pb2.Timestamp
    owner: str
    owner_id: str
    spent: int
    held: int
    remaining: int
    resets_at: _timestamp_pb2.Timestamp
    counted_since: _timestamp_pb2.Timestamp
    set_by_operator: bool
    def __init__(self, id: _Optional[str] = ..., metric: _Optional[str] = ..., window: _Optional[str] = ..., amount: _Optional[int] = ..., model: _Optional[str] = ..., per: _Optional[str] = ..., temporary_amount: _Optional[int] = ..., temporary_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., owner: _Optional[str] = ..., owner_id: _Optional[str] = ..., spent: _Optional[int] = ..., held: _Optional[int] = ..., remaining: _Optional[int] = ..., resets_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., counted_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., set_by_operator: bool = ...) -> None: ...

class ListLimitsRequest(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: str
    def __init__(self, user: _Optional[str] = ...) -> None: ...

class ListLimitsResponse(_message.Message):
    __slots__ = ("limits",)
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[Limit]
    def __init__(self, limits: _Optional[_Iterable[_Union[Limit, _Mapping]]] = ...) -> None: ...
