from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class GetMeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetMeResponse(_message.Message):
    __slots__ = ("key", "key_name", "plan", "rate_limit_rpm", "balance", "balance_micros")
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_NAME_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_RPM_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    key: str
    key_name: str
    plan: str
    rate_limit_rpm: int
    balance: str
    balance_micros: int
    def __init__(self, key: _Optional[str] = ..., key_name: _Optional[str] = ..., plan: _Optional[str] = ..., rate_limit_rpm: _Optional[int] = ..., balance: _Optional[str] = ..., balance_micros: _Optional[int] = ...) -> None: ...
