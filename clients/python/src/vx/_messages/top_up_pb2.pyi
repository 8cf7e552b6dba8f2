import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TopUp(_message.Message):
    __slots__ = ("id", "state", "amount_micros", "amount", "url", "created_at", "paid_at", "receipt_url", "refunded_micros", "disputed_micros", "automatic", "failure", "invoice_url")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    PAID_AT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_URL_FIELD_NUMBER: _ClassVar[int]
    REFUNDED_MICROS_FIELD_NUMBER: _ClassVar[int]
    DISPUTED_MICROS_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    INVOICE_URL_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    amount_micros: int
    amount: str
    url: str
    created_at: _timestamp_pb2.Timestamp
    paid_at: _timestamp_pb2.Timestamp
    receipt_url: str
    refunded_micros: int
    disputed_micros: int
    automatic: bool
    failure: str
    invoice_url: str
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., amount_micros: _Optional[int] = ..., amount: _Optional[str] = ..., url: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., paid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., receipt_url: _Optional[str] = ..., refunded_micros: _Optional[int] = ..., disputed_micros: _Optional[int] = ..., automatic: bool = ..., failure: _Optional[str] = ..., invoice_url: _Optional[str] = ...) -> None: ...

class AutoTopUp(_message.Message):
    __slots__ = ("enabled", "threshold_micros", "amount_micros", "monthly_max_micros", "state", "month_micros", "payment_method", "setup_url", "failures", "last_failure", "topup_id")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_MICROS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    MONTHLY_MAX_MICROS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MONTH_MICROS_FIELD_NUMBER: _ClassVar[int]
    PAYMENT_METHOD_FIELD_NUMBER: _ClassVar[int]
    SETUP_URL_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_FIELD_NUMBER: _ClassVar[int]
    TOPUP_ID_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    threshold_micros: int
    amount_micros: int
    monthly_max_micros: int
    state: str
    month_micros: int
    payment_method: str
    setup_url: str
    failures: int
    last_failure: str
    topup_id: str
    def __init__(self, enabled: bool = ..., threshold_micros: _Optional[int] = ..., amount_micros: _Optional[int] = ..., monthly_max_micros: _Optional[int] = ..., state: _Optional[str] = ..., month_micros: _Optional[int] = ..., payment_method: _Optional[str] = ..., setup_url: _Optional[str] = ..., failures: _Optional[int] = ..., last_failure: _Optional[str] = ..., topup_id: _Optional[str] = ...) -> None: ...

class GetAutoTopUpRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetAutoTopUpResponse(_message.Message):
    __slots__ = ("auto_topup",)
    AUTO_TOPUP_FIELD_NUMBER: _ClassVar[int]
    auto_topup: AutoTopUp
    def __init__(self, auto_topup: _Optional[_Union[AutoTopUp, _Mapping]] = ...) -> None: ...

class PutAutoTopUpRequest(_message.Message):
    __slots__ = ("enabled", "threshold_micros", "amount_micros", "monthly_max_micros", "return_url", "replace_payment_method")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_MICROS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    MONTHLY_MAX_MICROS_FIELD_NUMBER: _ClassVar[int]
    RETURN_URL_FIELD_NUMBER: _ClassVar[int]
    REPLACE_PAYMENT_METHOD_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    threshold_micros: int
    amount_micros: int
    monthly_max_micros: int
    return_url: str
    replace_payment_method: bool
    def __init__(self, enabled: bool = ..., threshold_micros: _Optional[int] = ..., amount_micros: _Optional[int] = ..., monthly_max_micros: _Optional[int] = ..., return_url: _Optional[str] = ..., replace_payment_method: bool = ...) -> None: ...

class PutAutoTopUpResponse(_message.Message):
    __slots__ = ("auto_topup",)
    AUTO_TOPUP_FIELD_NUMBER: _ClassVar[int]
    auto_topup: AutoTopUp
    def __init__(self, auto_topup: _Optional[_Union[AutoTopUp, _Mapping]] = ...) -> None: ...

class CreateTopUpRequest(_message.Message):
    __slots__ = ("amount_micros", "return_url")
    AMOUNT_MICROS_FIELD_NUMBER: _ClassVar[int]
    RETURN_URL_FIELD_NUMBER: _ClassVar[int]
    amount_micros: int
    return_url: str
    def __init__(self, amount_micros: _Optional[int] = ..., return_url: _Optional[str] = ...) -> None: ...

class CreateTopUpResponse(_message.Message):
    __slots__ = ("topup",)
    TOPUP_FIELD_NUMBER: _ClassVar[int]
    topup: TopUp
    def __init__(self, topup: _Optional[_Union[TopUp, _Mapping]] = ...) -> None: ...

class GetTopUpRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetTopUpResponse(_message.Message):
    __slots__ = ("topup",)
    TOPUP_FIELD_NUMBER: _ClassVar[int]
    topup: TopUp
    def __init__(self, topup: _Optional[_Union[TopUp, _Mapping]] = ...) -> None: ...

class ListTopUpsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTopUpsResponse(_message.Message):
    __slots__ = ("topups", "next_page_token")
    TOPUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    topups: _containers.RepeatedCompositeFieldContainer[TopUp]
    next_page_token: str
    def __init__(self, topups: _Optional[_Iterable[_Union[TopUp, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
