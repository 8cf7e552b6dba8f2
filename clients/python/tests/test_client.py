"""Runs against a server: VX_URL and VX_KEY name it, VX_FAULT_URL a proxy in front of it that fails on demand."""

import datetime
import json
import os
import unittest
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional

import vx

MODEL = "vx-sandbox-small"
REASONS = json.loads(os.environ["VX_REASONS"])
#: Differs between runs against one server.
RUN = uuid.uuid4().hex


def asks(content: str, model: str = MODEL) -> Dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": content}]}


class Fault:
    """A header for the proxy, and the idempotency keys that the attempts of the call sent."""

    def __init__(self, parts: str) -> None:
        self.user = f"py-{uuid.uuid4().hex}"
        self.options: vx.CallOptions = {"headers": {"x-fault": f"id={self.user};{parts}"}}

    def once(self) -> vx.CallOptions:
        options = self.options.copy()
        options["max_retries"] = 0
        return options

    def keyed(self, key: str) -> vx.CallOptions:
        options = self.options.copy()
        options["idempotency_key"] = key
        return options

    def attempts(self) -> List[Optional[str]]:
        with urllib.request.urlopen(f"{os.environ['VX_FAULT_URL']}/attempts?id={self.user}") as response:
            keys: List[Optional[str]] = json.load(response)
            return keys


class ClientCase(unittest.TestCase):
    def setUp(self) -> None:
        self.client = vx.Client()
        self.faulty = vx.Client(url=os.environ["VX_FAULT_URL"])
        self.addCleanup(self.client.close)
        self.addCleanup(self.faulty.close)

    def failure(self, call: Callable[[], object]) -> vx.VxError:
        with self.assertRaises(vx.VxError) as caught:
            call()
        return caught.exception

    def charges_of(self, user: str) -> List[vx.LedgerEntry]:
        return [entry for entry in self.client.ledger.list(kind="generation") if entry.user == user]

    def first_charges_of(self, user: str) -> List[vx.LedgerEntry]:
        while True:
            charges = self.charges_of(user)
            if charges:
                return charges


class Replies(ClientCase):
    def test_a_reply_has_a_text_and_its_cost_is_in_the_ledger(self) -> None:
        reply = self.client.generate(**asks("hello"))
        self.assertRegex(reply.message.content, r"^This is a reply of the sandbox\.")
        self.assertEqual(self.client.ledger.generation(reply.id).amount_micros, -reply.usage.cost_micros)

    def test_the_final_response_of_a_stream_is_the_reply_without_a_stream(self) -> None:
        tools = [{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
        for content in ("hello", "[[reasoning=20]] hello", "[[tool]] hello", "[[tools=2 reasoning=8]] hello"):
            with self.subTest(content):
                request = {**asks(content), "tools": tools, "reasoning_effort": "low", "max_tokens": 9_000}
                unary = self.client.generate(**request)
                with self.client.stream(**request) as stream:
                    self.assertGreater(sum(1 for _ in stream), 1)
                    streamed = stream.final_response()
                for reply in (unary, streamed):
                    reply.id = ""
                    reply.balance_micros = 0
                    for call in reply.message.tool_calls:
                        call.id = ""
                    for block in reply.message.reasoning:
                        block.signature = block.encrypted = ""
                self.assertEqual(streamed, unary)

    def test_a_reply_with_tool_calls_can_be_sent_back(self) -> None:
        tools: List[vx.ToolInput] = [{"name": "weather"}]
        question: vx.MessageInput = {"role": "user", "content": "How is the weather?"}
        first = self.client.generate(model=MODEL, messages=[question], tools=tools, tool_choice="required")
        results: List[vx.MessageInput] = [
            {"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in first.message.tool_calls
        ]
        second = self.client.generate(model=MODEL, messages=[question, first.message, *results], tools=tools)
        self.assertEqual((first.finish_reason, second.finish_reason), ("tool_calls", "stop"))

    def test_final_response_reads_a_stream_that_nobody_iterated(self) -> None:
        self.assertRegex(self.client.stream(**asks("hello")).final_response().message.content, "^This is")

    def test_leaving_a_stream_ends_the_generation(self) -> None:
        user = f"{RUN}-left"
        with self.client.stream(**asks("[[tokens=400 delay_ms=50]]"), user=user) as stream:
            for _ in stream:
                break
        self.assertRegex(stream.headers["x-request-id"], "^req_")
        with self.assertRaises(RuntimeError):
            stream.final_response()
        charge = self.first_charges_of(user)[0]
        self.assertLess(charge.output_tokens, 200)
        self.assertIn("disconnected", charge.reason)

    def test_quotes_embeddings_models_usage_and_the_account_are_read(self) -> None:
        quote = self.client.quote(**asks("hello"))
        self.assertTrue(quote.fits and quote.hold_micros > 0)
        reply = self.client.embed(model="vx-sandbox-embed", input=["a", "b"], dimensions=8)
        self.assertEqual([len(embedding.values) for embedding in reply.embeddings], [8, 8])
        self.assertRegex(self.client.me().balance, r"^\$\d")
        self.assertEqual(self.client.models.get(MODEL).id, MODEL)
        ids = [model.id for model in self.client.models.list(page_size=1)]
        self.assertIn(MODEL, ids)
        self.assertGreaterEqual(len(ids), 3)
        self.client.generate(**asks("hello"))
        rows = list(self.client.usage(group_by=["model"]))
        self.assertTrue(any(row.model == MODEL and row.cost_micros > 0 for row in rows))

    def test_a_field_called_from_has_an_underscore(self) -> None:
        reply = self.client.generate(**asks("hello"))
        created = self.client.ledger.generation(reply.id).created_at.ToDatetime()
        self.assertNotIn(reply.id, [entry.generation_id for entry in self.client.ledger.list(to=created)])
        self.assertIn(reply.id, [entry.generation_id for entry in self.client.ledger.list(from_=created)])

    def test_keys_are_created_listed_and_revoked(self) -> None:
        created = self.client.keys.create(name="test", scopes=["read"])
        key_id = created.api_key.id
        with vx.Client(key=created.secret) as other:
            self.assertEqual(other.me().key_name, "test")
            self.assertEqual(self.client.keys.get(key_id).state, "active")
            limit = vx.Limit(metric="cost", window="day", amount=5_000_000)
            changed = self.client.keys.update(key_id=key_id, name="changed", limits=[limit])
            self.assertEqual(changed.name, "changed")
            rotated = self.client.keys.rotate(key_id, overlap_seconds=60)
            self.assertNotEqual(rotated.secret, created.secret)
            with vx.Client(key=rotated.secret) as newer:
                self.assertIn(("cost", 5_000_000), [(one.metric, one.remaining) for one in newer.limits()])
            cleared = self.client.keys.update(key_id=key_id, name="again", update_mask=["limits"])
            self.assertEqual((cleared.name, list(cleared.limits)), ("changed", []))
            self.assertEqual(self.client.keys.revoke(key_id).state, "revoked")
            items, _ = next(self.client.keys.list(page_size=1).pages())
            self.assertEqual(items[0].id, key_id)
            error = self.failure(other.me)
        self.assertIsInstance(error, vx.RevokedApiKeyError)
        self.assertIsInstance(error, vx.AuthenticationError)


class Errors(ClientCase):
    def test_errors_have_the_class_of_their_reason_and_what_the_server_said(self) -> None:
        invalid = self.failure(lambda: self.client.generate(**asks("hello"), temperature=3))
        self.assertIsInstance(invalid, vx.InvalidArgumentError)
        self.assertEqual((invalid.code, invalid.fields[0][0]), ("invalid_argument", "temperature"))
        self.assertRegex(invalid.request_id or "", "^req_")
        broke = self.failure(lambda: vx.Client(key=os.environ["VX_BROKE_KEY"]).generate(**asks("hello")))
        self.assertIsInstance(broke, vx.InsufficientBalanceError)
        self.assertIsInstance(broke, vx.BillingError)
        self.assertEqual(broke.metadata["balance_micros"], "0")
        unknown = self.failure(lambda: self.client.generate(**asks("hello", "no-model")))
        self.assertIsInstance(unknown, vx.ModelNotFoundError)
        streamed = self.failure(lambda: self.client.stream(**asks("hello", "no-model")).final_response())
        self.assertIsInstance(streamed, vx.ModelNotFoundError)
        keyless = self.failure(lambda: vx.Client(key=os.environ["VX_NO_KEY"]).me())
        self.assertIsInstance(keyless, vx.InvalidApiKeyError)
        broken = self.failure(lambda: self.client.generate(**asks("[[fail_after=0]]"), options={"max_retries": 0}))
        self.assertIsInstance(broken, vx.UpstreamError)

    def test_a_rate_limit_says_when_to_retry_and_a_wait_beyond_the_time_limit_is_not_begun(self) -> None:
        limited = vx.Client(key=os.environ["VX_LIMITED_KEY"], timeout=1)

        def call_until_refused() -> None:
            while True:
                limited.models.get(MODEL)

        error = self.failure(call_until_refused)
        self.assertIsInstance(error, vx.RateLimitExceededError)
        self.assertGreaterEqual(error.retry_after or 0, 1)

    def limited_key(self, **limit: Any) -> str:
        return self.client.keys.create(name="limited", limits=[vx.Limit(**limit)]).secret

    def test_a_call_that_a_running_call_refuses_succeeds_by_itself(self) -> None:
        slow = asks("[[tokens=2 delay_ms=400]]")
        with vx.Client(key=self.limited_key(metric="concurrent", amount=1)) as waiting, ThreadPoolExecutor(2) as pool:
            calls: List[Callable[[], object]] = [
                lambda: waiting.generate(**slow),
                lambda: waiting.stream(**slow).final_response(),
            ]
            list(pool.map(lambda call: call(), calls))
            once: vx.CallOptions = {"max_retries": 0}
            both = [pool.submit(lambda: waiting.generate(**slow, options=once)) for _ in range(2)]
            (error,) = [one for one in (future.exception() for future in both) if one is not None]
            assert isinstance(error, vx.ConcurrencyLimitReachedError) and error.limit is not None
            self.assertEqual(error.retry_after, 1)
            self.assertEqual((error.limit.metric, error.limit.held, error.limit.resets_at), ("concurrent", 1, None))

    def test_an_error_has_the_limit_that_refused_its_call(self) -> None:
        key = self.limited_key(metric="generations", window="month", amount=1)
        with vx.Client(url=os.environ["VX_FAULT_URL"], key=key) as limited:
            limited.generate(**asks("hello"))
            fault = Fault("times=0")
            error = self.failure(lambda: limited.generate(**asks("hello"), options=fault.options))
        self.assertEqual(len(fault.attempts()), 1)
        self.assertIsInstance(error, vx.GenerationLimitExceededError)
        limit = error.limit
        assert limit is not None and limit.resets_at is not None
        self.assertRegex(f"{limit.id} {limit.owner_id}", r"^lim_\w+ key_\w+$")
        self.assertGreater(limit.resets_at, datetime.datetime.now(datetime.timezone.utc))
        self.assertEqual(
            (limit.metric, limit.window, limit.model, limit.per, limit.amount, limit.spent, limit.held, limit.needed),
            ("generations", "month", "", "", 1, 1, 0, 1),
        )
        self.assertIsNone(self.failure(lambda: self.client.generate(**asks("hello", "no-model"))).limit)

    def test_each_reason_has_its_class(self) -> None:
        for row in REASONS:
            with self.subTest(row["reason"]):
                fault = Fault(f"times=9;reason={row['reason']}")
                error = self.failure(lambda: self.faulty.me(options=fault.once()))
                found = (type(error).__name__, error.reason, error.code, error.request_id)
                self.assertEqual(found, (row["name"], row["reason"], row["code"], "of-the-proxy"))

    def test_a_server_that_is_not_reachable(self) -> None:
        nowhere = vx.Client(url="http://127.0.0.1:1", max_retries=0)
        self.assertIsInstance(self.failure(nowhere.me), vx.ConnectionFailedError)

    def test_a_time_limit_ends_a_call(self) -> None:
        request = asks("[[tokens=400 delay_ms=100]]")
        error = self.failure(lambda: self.client.generate(**request, options={"timeout": 0.1}))
        self.assertIsInstance(error, (vx.TimedOutError, vx.DeadlineExceededError))
        self.assertEqual(error.code, "deadline_exceeded")

    def test_there_is_no_client_without_a_key(self) -> None:
        with self.assertRaisesRegex(ValueError, "VX_KEY"):
            vx.Client(key="")


class Retries(ClientCase):
    def test_a_retry_with_the_same_key_succeeds_and_is_charged_once(self) -> None:
        for parts in ("status=503;retry-after=0", "lose=1", "reason=overloaded;retry-after=0"):
            for kind in ("generate", "stream"):
                with self.subTest(kind, parts=parts):
                    fault = Fault(parts)
                    request = {**asks("[[tokens=5]]"), "user": fault.user}
                    if kind == "generate":
                        reply = self.faulty.generate(**request, options=fault.options)
                    else:
                        options = fault.keyed(fault.user)
                        reply = self.faulty.stream(**request, options=options).final_response()
                    self.assertEqual(reply.message.content, "This is a reply of")
                    keys = fault.attempts()
                    self.assertEqual(len(keys), 2)
                    self.assertIsNotNone(keys[0])
                    self.assertEqual(keys[0], keys[1])
                    charged = [entry.generation_id for entry in self.charges_of(fault.user)]
                    self.assertEqual(charged, [reply.id])

    def test_the_last_error_is_raised_and_a_final_one_at_once(self) -> None:
        down = Fault("times=9;status=503;retry-after=0")
        error = self.failure(lambda: self.faulty.generate(**asks("hello"), options=down.options))
        self.assertIsInstance(error, vx.ServerError)
        self.assertEqual(len(down.attempts()), 3)
        wrong = Fault("times=9;reason=invalid_argument")
        self.failure(lambda: self.faulty.generate(**asks("hello"), options=wrong.options))
        self.assertEqual(len(wrong.attempts()), 1)

    def test_a_stream_without_a_key_is_repeated_only_if_the_server_says_that_it_failed(self) -> None:
        refused = Fault("reason=overloaded;retry-after=0")
        self.faulty.stream(**asks("hello"), options=refused.options).final_response()
        self.assertEqual(refused.attempts(), [None, None])
        for parts, kind in (("status=503;retry-after=0", vx.ServerError), ("lose=1", vx.ConnectionFailedError)):
            lost = Fault(parts)
            stream = self.faulty.stream(**asks("hello"), options=lost.options)
            self.assertIsInstance(self.failure(stream.final_response), kind)
            self.assertEqual(len(lost.attempts()), 1)

    def test_a_stream_that_is_cut_in_the_middle_raises_and_is_charged_once(self) -> None:
        for key in (None, f"{RUN}-cut"):
            with self.subTest(key):
                fault = Fault("cut=120")
                options = fault.options if key is None else fault.keyed(key)
                request = {**asks("[[tokens=40]] hello"), "user": fault.user}
                stream = self.faulty.stream(**request, options=options)
                texts: List[str] = []
                error = self.failure(lambda: texts.extend(stream.texts()))
                self.assertIsInstance(error, vx.ConnectionFailedError)
                self.assertEqual(error.idempotency_key, key)
                self.assertTrue(texts)
                self.assertEqual(stream.partial_message.content, "".join(texts))
                self.assertEqual(fault.attempts(), [key])
                if key is not None:
                    again = self.client.stream(**request, options={"idempotency_key": key, "max_retries": 9})
                    self.assertEqual(again.final_response().usage.output_tokens, 40)
                self.assertEqual(len(self.first_charges_of(fault.user)), 1)

    def test_a_key_in_the_headers_is_the_key_of_the_call_and_an_empty_key_is_none(self) -> None:
        given, key = Fault("lose=1"), f"{RUN}-header"
        headers = {**given.options["headers"], "Idempotency-Key": key}
        self.faulty.generate(**asks("hello"), options={"headers": headers})
        self.assertEqual(given.attempts(), [key, key])
        empty = Fault("lose=1")
        self.failure(self.faulty.stream(**asks("hello"), options=empty.keyed("")).final_response)
        self.assertEqual(empty.attempts(), [None])

    def test_creating_a_key_is_not_repeated_when_its_response_is_lost(self) -> None:
        fault = Fault("lose=1")
        error = self.failure(lambda: self.faulty.keys.create(name="lost", scopes=["read"], options=fault.options))
        self.assertIsInstance(error, vx.ConnectionFailedError)
        self.assertEqual(len(fault.attempts()), 1)
        for key in self.client.keys.list():
            if key.name == "lost":
                self.client.keys.revoke(key.id)


class AsyncClients(unittest.IsolatedAsyncioTestCase):
    async def test_calls_streams_lists_and_errors(self) -> None:
        async with vx.AsyncClient() as client:
            reply = await client.generate(**asks("[[tokens=5]]"))
            self.assertEqual(reply.message.content, "This is a reply of")
            async with client.stream(**asks("[[tokens=40]]")) as stream:
                texts = [text async for text in stream.texts()]
            self.assertGreater(len(texts), 1)
            self.assertEqual((await stream.final_response()).message.content, "".join(texts))
            ids = [model.id async for model in client.models.list(page_size=1)]
            self.assertIn(MODEL, ids)
            with self.assertRaises(vx.ModelNotFoundError):
                await client.generate(**asks("hello", "no-model"))
            with self.assertRaises(vx.ModelNotFoundError):
                async with client.stream(**asks("hello", "no-model")):
                    self.fail("the stream has an error")

    async def test_a_retry_with_the_same_key_is_charged_once(self) -> None:
        fault = Fault("lose=1")
        async with vx.AsyncClient(url=os.environ["VX_FAULT_URL"]) as client:
            reply = await client.generate(**asks("[[tokens=5]]"), user=fault.user, options=fault.options)
            keys = fault.attempts()
            self.assertEqual((len(keys), len(set(keys))), (2, 1))
            charged = [entry.generation_id async for entry in client.ledger.list() if entry.user == fault.user]
            self.assertEqual(charged, [reply.id])

    async def test_leaving_a_stream_ends_the_generation(self) -> None:
        user = f"{RUN}-left-async"
        async with vx.AsyncClient() as client:
            async with client.stream(**asks("[[tokens=400 delay_ms=50]]"), user=user) as stream:
                async for _ in stream:
                    break
            charges: List[vx.LedgerEntry] = []
            while not charges:
                charges = [entry async for entry in client.ledger.list() if entry.user == user]
        self.assertLess(charges[0].output_tokens, 200)


if __name__ == "__main__":
    unittest.main()
