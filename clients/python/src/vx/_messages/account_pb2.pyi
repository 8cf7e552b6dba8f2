from vx._messages import key_pb2 as _key_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetAccountRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetAccountResponse(_message.Message):
    __slots__ = ("id", "name", "state", "balance_micros", "balance", "held_micros", "held", "available_micros", "available", "plan", "key", "top_up_url")
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
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[str] = ..., balance_micros: _Optional[int] = ..., balance: _Optional[str] = ..., held_micros: _Optional[int] = ..., held: _Optional[str] = ..., available_micros: _Optional[int] = ..., available: _Optional[str] = ..., plan: _Optional[str] = ..., key: _Optional[_Union[_key_pb2.ApiKey, _Mapping]] = ..., top_up_url: _Optional[str] = ...) -> None: ...
