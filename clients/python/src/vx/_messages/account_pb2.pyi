import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from vx._messages import key_pb2 as _key_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetAccountRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetAccountResponse(_message.Message):
    __slots__ = ("id", "name", "state", "balance_micros", "balance", "held_micros", "held", "available_micros", "available", "plan", "key", "top_up_url", "low_balance_micros", "owed_micros", "owed", "grants")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    HELD_MICROS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_MICROS_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOP_UP_URL_FIELD_NUMBER: _ClassVar[int]
    LOW_BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    OWED_MICROS_FIELD_NUMBER: _ClassVar[int]
    OWED_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    state: str
    balance_micros: int
    balance: str
    held_micros: int
    held: str
    available_micros: int
    available: str
    plan: str
    key: _key_pb2.ApiKey
    top_up_url: str
    low_balance_micros: int
    owed_micros: int
    owed: str
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[str] = ..., balance_micros: _Optional[int] = ..., balance: _Optional[str] = ..., held_micros: _Optional[int] = ..., held: _Optional[str] = ..., available_micros: _Optional[int] = ..., available: _Optional[str] = ..., plan: _Optional[str] = ..., key: _Optional[_Union[_key_pb2.ApiKey, _Mapping]] = ..., top_up_url: _Optional[str] = ..., low_balance_micros: _Optional[int] = ..., owed_micros: _Optional[int] = ..., owed: _Optional[str] = ..., grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("id", "amount_micros", "remaining_micros", "expires_at", "promotional")
    ID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_MICROS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    PROMOTIONAL_FIELD_NUMBER: _ClassVar[int]
    id: str
    amount_micros: int
    remaining_micros: int
    expires_at: _timestamp_pb2.Timestamp
    promotional: bool
    def __init__(self, id: _Optional[str] = ..., amount_micros: _Optional[int] = ..., remaining_micros: _Optional[int] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., promotional: bool = ...) -> None: ...

class UpdateAccountRequest(_message.Message):
    __slots__ = ("low_balance_micros", "update_mask")
    LOW_BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    low_balance_micros: int
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, low_balance_micros: _Optional[int] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateAccountResponse(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: GetAccountResponse
    def __init__(self, account: _Optional[_Union[GetAccountResponse, _Mapping]] = ...) -> None: ...
