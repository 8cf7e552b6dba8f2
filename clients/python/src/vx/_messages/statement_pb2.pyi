import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatementRequest(_message.Message):
    __slots__ = ("month",)
    MONTH_FIELD_NUMBER: _ClassVar[int]
    month: str
    def __init__(self, month: _Optional[str] = ...) -> None: ...

class GetStatementResponse(_message.Message):
    __slots__ = ("month", "account_id", "currency", "is_final", "opening_balance_micros", "credits_micros", "topups_micros", "charges_micros", "refunds_micros", "adjustments_micros", "expiries_micros", "closing_balance_micros", "lines")
    MONTH_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    IS_FINAL_FIELD_NUMBER: _ClassVar[int]
    OPENING_BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOPUPS_MICROS_FIELD_NUMBER: _ClassVar[int]
    CHARGES_MICROS_FIELD_NUMBER: _ClassVar[int]
    REFUNDS_MICROS_FIELD_NUMBER: _ClassVar[int]
    ADJUSTMENTS_MICROS_FIELD_NUMBER: _ClassVar[int]
    EXPIRIES_MICROS_FIELD_NUMBER: _ClassVar[int]
    CLOSING_BALANCE_MICROS_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    month: str
    account_id: str
    currency: str
    is_final: bool
    opening_balance_micros: int
    credits_micros: int
    topups_micros: int
    charges_micros: int
    refunds_micros: int
    adjustments_micros: int
    expiries_micros: int
    closing_balance_micros: int
    lines: _containers.RepeatedCompositeFieldContainer[StatementLine]
    def __init__(self, month: _Optional[str] = ..., account_id: _Optional[str] = ..., currency: _Optional[str] = ..., is_final: bool = ..., opening_balance_micros: _Optional[int] = ..., credits_micros: _Optional[int] = ..., topups_micros: _Optional[int] = ..., charges_micros: _Optional[int] = ..., refunds_micros: _Optional[int] = ..., adjustments_micros: _Optional[int] = ..., expiries_micros: _Optional[int] = ..., closing_balance_micros: _Optional[int] = ..., lines: _Optional[_Iterable[_Union[StatementLine, _Mapping]]] = ...) -> None: ...

class StatementLine(_message.Message):
    __slots__ = ("kind", "created_at", "id", "description", "model", "entries", "input_tokens", "output_tokens", "amount_micros", "amount")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    created_at: _timestamp_pb2.Timestamp
    id: str
    description: str
    model: str
    entries: int
    input_tokens: int
    output_tokens: int
    amount_micros: int
    amount: str
    def __init__(self, kind: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., id: _Optional[str] = ..., description: _Optional[str] = ..., model: _Optional[str] = ..., entries: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., amount_micros: _Optional[int] = ..., amount: _Optional[str] = ...) -> None: ...
