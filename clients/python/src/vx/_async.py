"""The asynchronous client. tools/write-python-sync.ts writes the synchronous one from it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Generic, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar

import anyio
import httpx
from google.protobuf.message import Message as ProtoMessage
from typing_extensions import Self, Unpack

from . import _methods as methods
from ._errors import ConnectionFailedError, TimedOutError, VxError
from ._inputs import (
    CreateKeyInput,
    CreateWebhookInput,
    EmbedInput,
    GenerateInput,
    GetUsageInput,
    ListDeliveriesInput,
    ListEntriesInput,
    ListEventsInput,
    ListKeysInput,
    ListModelsInput,
    RedeliverInput,
    UpdateKeyInput,
    UpdateWebhookInput,
    WatchEventsInput,
)
from ._reply_builder import ReplyBuilder
from ._retries import Attempts, CallOptions
from ._settings import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT, Settings
from ._wire import Body, Frames, Method, check_stream, check_unary, error_of_transport
from ._messages.embed_pb2 import EmbedResponse
from ._messages.event_pb2 import Event
from ._messages.generate_pb2 import (
    GenerateDelta,
    GenerateResponse,
    Message,
    QuoteGenerateResponse,
    StreamGenerateResponse,
)
from ._messages.key_pb2 import ApiKey, CreateKeyResponse, RotateKeyResponse
from ._messages.ledger_pb2 import LedgerEntry
from ._messages.limit_pb2 import Limit
from ._messages.me_pb2 import GetMeResponse
from ._messages.model_pb2 import Model
from ._messages.usage_pb2 import UsageRow
from ._messages.webhook_pb2 import (
    CreateWebhookResponse,
    Delivery,
    DeliveryOutcome,
    RedeliverResponse,
    RotateWebhookResponse,
    Webhook,
)

Response = TypeVar("Response", bound=ProtoMessage)
Item = TypeVar("Item")

NO_OPTIONS: CallOptions = {}

#: A connection of a watch that broke unnoticed is replaced after this time, in seconds.
_CONNECTION_TIME = 300.0


@dataclass(frozen=True)
class _Opened:
    """A stream whose first event was read, so that everything before it could be repeated."""

    response: httpx.Response
    events: AsyncIterator[StreamGenerateResponse]
    key: Optional[str]


class AsyncPages(Generic[Item]):
    """A list that is read page by page while it is iterated."""

    def __init__(self, read: Callable[[str], Awaitable[Tuple[List[Item], str]]], page_token: str) -> None:
        self._read = read
        self._page_token = page_token

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for items, _ in self.pages():
            for item in items:
                yield item

    async def pages(self) -> AsyncIterator[Tuple[List[Item], str]]:
        """The pages. Each has the ``page_token`` of a list that continues after it; empty after the last one."""
        page_token = self._page_token
        while True:
            items, page_token = await self._read(page_token)
            yield items, page_token
            if not page_token:
                return


class AsyncGenerationStream:
    """A streamed reply: iterate it for the deltas, then call ``final_response`` for the whole reply.

    The call starts when the ``async with`` block or the iteration begins. Leaving the block ends the generation, unless
    the call has an idempotency key.
    """

    def __init__(self, open: Callable[[], Awaitable[_Opened]]) -> None:
        self._open = open
        self._opened: Optional[_Opened] = None
        self._is_closed = False
        self._builder = ReplyBuilder()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._is_closed = True
        if self._opened is not None:
            await self._opened.response.aclose()

    async def _start(self) -> _Opened:
        if self._opened is None:
            self._opened = await self._open()
        return self._opened

    async def __aiter__(self) -> AsyncIterator[GenerateDelta]:
        opened = await self._start()
        try:
            async for event in opened.events:
                if event.HasField("done"):
                    self._builder.done = event.done
                if event.HasField("delta"):
                    self._builder.append(event.delta)
                    yield event.delta
        except VxError as error:
            error.idempotency_key = opened.key
            raise
        finally:
            await self.aclose()

    async def texts(self) -> AsyncIterator[str]:
        """The texts of the reply."""
        async for delta in self:
            if delta.content:
                yield delta.content

    async def final_response(self) -> GenerateResponse:
        """The whole reply. Reads the rest of the stream."""
        if not self._is_closed:
            async for _ in self:
                pass
        return self._builder.response()

    @property
    def partial_message(self) -> Message:
        """The message received so far, even after an error."""
        return self._builder.message

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response, such as ``x-request-id``. Empty before the stream starts."""
        return {} if self._opened is None else self._opened.response.headers


class AsyncClient:
    """A client of one server with one API key."""

    def __init__(
        self,
        *,
        url: Optional[str] = None,
        key: Optional[str] = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        headers: Optional[Mapping[str, str]] = None,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        self._settings = Settings(url, key, timeout, max_retries, headers)
        self._http = http or httpx.AsyncClient()
        self.models = AsyncModels(self)
        self.keys = AsyncKeys(self)
        self.ledger = AsyncLedger(self)
        self.events = AsyncEvents(self)
        self.webhooks = AsyncWebhooks(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the connections of the client."""
        await self._http.aclose()

    async def generate(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[GenerateInput]) -> GenerateResponse:
        """Generates one reply. It is charged once, whatever the number of retries."""
        return await self.call(methods.GENERATE, request, options)

    def stream(
        self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[GenerateInput]
    ) -> AsyncGenerationStream:
        """Generates one reply and streams it. Errors before the first event are retried, later ones are not."""
        method = methods.STREAM
        body = method.body(request)

        async def open() -> _Opened:
            attempts = self._attempts(method, options)

            async def attempt() -> _Opened:
                with anyio.fail_after(attempts.remaining):
                    response = await self._http.send(self._request(method, body, attempts), stream=True)
                try:
                    check_stream(response)
                    events = _events(method, response, attempts)
                    first = [event async for event in _first(events)]
                except BaseException:
                    await response.aclose()
                    raise
                return _Opened(response, _chain(first, events), attempts.key)

            return await _retried(attempts, attempt)

        return AsyncGenerationStream(open)

    async def quote(
        self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[GenerateInput]
    ) -> QuoteGenerateResponse:
        """What ``generate`` would hold for the same request, and the error it would get. Charges nothing."""
        return await self.call(methods.QUOTE, request, options)

    async def embed(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[EmbedInput]) -> EmbedResponse:
        """One vector for each text."""
        return await self.call(methods.EMBED, request, options)

    async def me(self, *, options: CallOptions = NO_OPTIONS) -> GetMeResponse:
        """The key of this client, its plan and the balance of its account."""
        return await self.call(methods.GET_ME, {}, options)

    async def limits(self, *, user: str = "", options: CallOptions = NO_OPTIONS) -> List[Limit]:
        """Every limit that applies to the key of this client, with what an end user has used."""
        return list((await self.call(methods.LIST_LIMITS, {"user": user}, options)).limits)

    def usage(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[GetUsageInput]) -> AsyncPages[UsageRow]:
        """The charged usage by period, key, model and end user."""

        async def read(page_token: str) -> Tuple[List[UsageRow], str]:
            page = await self.call(methods.GET_USAGE, {**request, "page_token": page_token}, options)
            return list(page.rows), page.next_page_token

        return AsyncPages(read, request.get("page_token", ""))

    async def call(self, method: Method[Response], fields: Mapping[str, Any], options: CallOptions) -> Response:
        """Makes a unary call with the retries, time limits and errors of this client."""
        attempts = self._attempts(method, options)
        body = method.body(fields)

        async def attempt() -> Response:
            with anyio.fail_after(attempts.remaining):
                response = await self._http.send(self._request(method, body, attempts), stream=True)
            try:
                received = Body()
                async for data in response.aiter_bytes():
                    attempts.check_time()
                    received.feed(data, response)
            finally:
                await response.aclose()
            reply = bytes(received.data)
            check_unary(response, reply)
            return method.parse(reply)

        return await _retried(attempts, attempt)

    def _attempts(self, method: Method[Any], options: CallOptions) -> Attempts:
        return Attempts(method.effect, options, self._settings.timeout, self._settings.max_retries)

    def _request(self, method: Method[Any], body: bytes, attempts: Attempts) -> httpx.Request:
        headers = {**self._settings.headers, **attempts.headers(), "content-type": method.content_type}
        return self._http.build_request(
            "POST", self._settings.url + method.path, content=body, headers=headers, timeout=attempts.remaining
        )


class AsyncModels:
    """The models of the server."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[ListModelsInput]) -> AsyncPages[Model]:
        async def read(page_token: str) -> Tuple[List[Model], str]:
            page = await self._client.call(methods.LIST_MODELS, {**request, "page_token": page_token}, options)
            return [*page.data], page.next_page_token

        return AsyncPages(read, request.get("page_token", ""))

    async def get(self, model: str, *, options: CallOptions = NO_OPTIONS) -> Model:
        return (await self._client.call(methods.GET_MODEL, {"model": model}, options)).model


class AsyncKeys:
    """The keys of the account."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[ListKeysInput]) -> AsyncPages[ApiKey]:
        async def read(page_token: str) -> Tuple[List[ApiKey], str]:
            page = await self._client.call(methods.LIST_KEYS, {**request, "page_token": page_token}, options)
            return [*page.api_keys], page.next_page_token

        return AsyncPages(read, request.get("page_token", ""))

    async def get(self, key_id: str, *, options: CallOptions = NO_OPTIONS) -> ApiKey:
        return (await self._client.call(methods.GET_KEY, {"key_id": key_id}, options)).api_key

    async def create(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[CreateKeyInput]) -> CreateKeyResponse:
        """Creates a key. Not repeated if its connection ends, because the key may exist then."""
        return await self._client.call(methods.CREATE_KEY, request, options)

    async def update(
        self, *, update_mask: Sequence[str] = (), options: CallOptions = NO_OPTIONS, **request: Unpack[UpdateKeyInput]
    ) -> ApiKey:
        """Changes the given fields. With ``update_mask``, changes those it names, and clears those not given."""
        mask = {"update_mask": {"paths": update_mask}} if update_mask else {}
        return (await self._client.call(methods.UPDATE_KEY, {**request, **mask}, options)).api_key

    async def rotate(
        self, key_id: str, *, overlap_seconds: int = 0, options: CallOptions = NO_OPTIONS
    ) -> RotateKeyResponse:
        """Gives a key a new secret. Not repeated if its connection ends, because the key may have it then."""
        fields = {"key_id": key_id, "overlap_seconds": overlap_seconds}
        return await self._client.call(methods.ROTATE_KEY, fields, options)

    async def revoke(self, key_id: str, *, options: CallOptions = NO_OPTIONS) -> ApiKey:
        """Revokes a key permanently."""
        return (await self._client.call(methods.REVOKE_KEY, {"key_id": key_id}, options)).api_key


class AsyncLedger:
    """The charges and credits of the account."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[ListEntriesInput]) -> AsyncPages[LedgerEntry]:
        """The entries, newest first."""

        async def read(page_token: str) -> Tuple[List[LedgerEntry], str]:
            page = await self._client.call(methods.LIST_ENTRIES, {**request, "page_token": page_token}, options)
            return [*page.entries], page.next_page_token

        return AsyncPages(read, request.get("page_token", ""))

    async def generation(self, id: str, *, options: CallOptions = NO_OPTIONS) -> LedgerEntry:
        """The entry of a generation, by the id of its reply."""
        return (await self._client.call(methods.GET_GENERATION, {"id": id}, options)).entry


class AsyncEvents:
    """The events of the account."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[ListEventsInput]) -> AsyncPages[Event]:
        """The events after ``after``, oldest first; with ``order="desc"`` those before it, newest first."""

        async def read(after: str) -> Tuple[List[Event], str]:
            page = await self._client.call(methods.LIST_EVENTS, {**request, "after": after}, options)
            return [*page.events], page.next_after if page.has_more else ""

        return AsyncPages(read, request.get("after", ""))

    async def watch(
        self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[WatchEventsInput]
    ) -> AsyncIterator[Event]:
        """The events after ``after`` and then each new one, without an end.

        A broken connection is made again, and continues after the last event that the loop has finished. Store its id, and
        pass it as ``after`` when the program starts again: no event is missed, and one may come twice. With
        ``max_retries``, the error of so many failed connections in a row is raised; ``timeout`` has no effect.
        """
        after = request.get("after", "")
        if after == "now":
            # Where "now" is, for all connections. Empty if there is no event.
            page = await self._client.call(methods.LIST_EVENTS, {"order": "desc", "page_size": 1}, options)
            after = page.events[0].id if page.events else ""
        method, http = methods.WATCH_EVENTS, self._client._http
        connection: CallOptions = {"max_retries": sys.maxsize}
        connection.update(options)
        connection["timeout"] = _CONNECTION_TIME
        attempts = self._client._attempts(method, connection)
        while True:
            body = method.body({**request, "after": after})
            try:
                with anyio.fail_after(attempts.remaining):
                    response = await http.send(self._client._request(method, body, attempts), stream=True)
                try:
                    check_stream(response)
                    async for received in _events(method, response, attempts):
                        attempts.succeed()
                        yield received.event
                        after = received.event.id
                finally:
                    await response.aclose()
                raise ConnectionFailedError("the stream ended", code="unavailable")
            except (httpx.HTTPError, TimeoutError) as error:
                failure = error_of_transport(error)
                failure.__cause__ = error
            except VxError as error:
                failure = error
            attempts.restart()
            if not isinstance(failure, TimedOutError):
                await anyio.sleep(attempts.delay_after(failure))


class AsyncWebhooks:
    """The webhooks of the account."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(
        self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[CreateWebhookInput]
    ) -> CreateWebhookResponse:
        """Creates a webhook. Only this response has its secret. Not repeated if its connection ends."""
        return await self._client.call(methods.CREATE_WEBHOOK, request, options)

    async def list(self, *, options: CallOptions = NO_OPTIONS) -> List[Webhook]:
        return [*(await self._client.call(methods.LIST_WEBHOOKS, {}, options)).webhooks]

    async def get(self, webhook_id: str, *, options: CallOptions = NO_OPTIONS) -> Webhook:
        return (await self._client.call(methods.GET_WEBHOOK, {"webhook_id": webhook_id}, options)).webhook

    async def update(
        self,
        *,
        update_mask: Sequence[str] = (),
        options: CallOptions = NO_OPTIONS,
        **request: Unpack[UpdateWebhookInput],
    ) -> Webhook:
        """Changes the given fields. With ``update_mask``, changes those it names, and clears those not given."""
        mask = {"update_mask": {"paths": update_mask}} if update_mask else {}
        return (await self._client.call(methods.UPDATE_WEBHOOK, {**request, **mask}, options)).webhook

    async def delete(self, webhook_id: str, *, options: CallOptions = NO_OPTIONS) -> None:
        """Deletes a webhook. Not repeated if its connection ends, because it may not exist then."""
        await self._client.call(methods.DELETE_WEBHOOK, {"webhook_id": webhook_id}, options)

    async def rotate(
        self, webhook_id: str, *, overlap_seconds: int = 0, options: CallOptions = NO_OPTIONS
    ) -> RotateWebhookResponse:
        """Gives a webhook a new secret. Not repeated if its connection ends, because the webhook may have it then."""
        fields = {"webhook_id": webhook_id, "overlap_seconds": overlap_seconds}
        return await self._client.call(methods.ROTATE_WEBHOOK, fields, options)

    async def test(self, webhook_id: str, *, options: CallOptions = NO_OPTIONS) -> DeliveryOutcome:
        """Sends an event of the type "webhook.test", and returns the outcome."""
        return (await self._client.call(methods.TEST_WEBHOOK, {"webhook_id": webhook_id}, options)).outcome

    def deliveries(
        self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[ListDeliveriesInput]
    ) -> AsyncPages[Delivery]:
        """The events that a webhook receives, the newest first, with the outcome of the last attempt."""

        async def read(page_token: str) -> Tuple[List[Delivery], str]:
            page = await self._client.call(methods.LIST_DELIVERIES, {**request, "page_token": page_token}, options)
            return [*page.deliveries], page.next_page_token

        return AsyncPages(read, request.get("page_token", ""))

    async def redeliver(
        self, *, options: CallOptions = NO_OPTIONS, **request: Unpack[RedeliverInput]
    ) -> RedeliverResponse:
        """Delivers one event, or those of a time, again."""
        return await self._client.call(methods.REDELIVER, request, options)


async def _retried(attempts: Attempts, attempt: Callable[[], Awaitable[Item]]) -> Item:
    while True:
        try:
            return await attempt()
        except (httpx.HTTPError, TimeoutError) as error:
            wrapped = error_of_transport(error)
            wrapped.__cause__ = error
            delay = attempts.delay_after(wrapped)
        except VxError as error:
            delay = attempts.delay_after(error)
        await anyio.sleep(delay)


async def _events(
    method: Method[Response], response: httpx.Response, attempts: Attempts
) -> AsyncIterator[Response]:
    frames = Frames()
    try:
        async for data in response.aiter_bytes():
            attempts.check_time()
            for message in frames.feed(data, response):
                yield method.parse(message)
    except httpx.HTTPError as error:
        raise error_of_transport(error) from error
    frames.check_end()


async def _first(events: AsyncIterator[Response]) -> AsyncIterator[Response]:
    async for event in events:
        yield event
        return


async def _chain(first: List[Response], rest: AsyncIterator[Response]) -> AsyncIterator[Response]:
    for event in first:
        yield event
    async for event in rest:
        yield event
