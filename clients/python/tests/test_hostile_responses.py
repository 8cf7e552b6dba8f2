"""Calls of servers that send what no vx server sends, and keys that no header can have."""

import asyncio
import base64
import json
import threading
import time
import traceback
import unittest
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Tuple

import vx
from vx._messages.generate_pb2 import GenerateDelta, StreamGenerateResponse, ToolCallDelta

KEY = "vx_live_" + "a" * 32
MEBIBYTE = bytes(2**20)

#: Sends a response; what it gets writes bytes.
Answer = Callable[[Callable[[bytes], object]], object]


def head(status: int, content_type: str, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-type: {content_type}\r\n{headers}\r\n".encode()


def frame(flags: int, data: bytes) -> bytes:
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


def error(wire: object, headers: str = "") -> bytes:
    return head(500, "application/json", headers) + json.dumps(wire).encode()


def send(data: bytes, write: Callable[[bytes], object]) -> None:
    write(data)


class Hostile(unittest.TestCase):
    def url(self, answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.close_connection = True
                try:
                    answer(self.wfile.write)
                except OSError:
                    pass  # The client left.

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def client(self, answer: Answer, **options: Any) -> vx.Client:
        client = vx.Client(url=self.url(answer), key=KEY, **{"max_retries": 0, **options})
        self.addCleanup(client.close)
        return client

    def failures(self, client: vx.Client) -> Tuple[vx.VxError, vx.VxError]:
        with self.assertRaises(vx.VxError) as unary:
            client.me()
        with self.assertRaises(vx.VxError) as streamed:
            client.stream(model="m", messages=[]).final_response()
        return unary.exception, streamed.exception

    def test_errors_that_are_not_valid_are_server_errors(self) -> None:
        info = base64.b64encode(b"\xff\xff").decode()
        details: List[object] = ["x", None, {"type": []}, {"type": "google.rpc.ErrorInfo", "value": 5}]
        details += [{"type": "google.rpc.ErrorInfo", "value": value} for value in ("a", "\u2026", info)]
        wire: Dict[str, Any] = {"code": "internal", "message": {"a": 1}, "details": details}
        for body in (
            error(wire),
            head(500, "application/json") + b"[" * 200_000,
            head(500, "application/json") + b"[1]",
            head(200, "application/connect+proto") + frame(2, json.dumps({"error": wire}).encode()),
            head(200, "application/connect+proto") + frame(2, b"[nope"),
            head(200, "application/connect+proto") + frame(2, b"[1]"),
            head(200, "application/connect+proto") + frame(2, b"[" * 200_000),
        ):
            with self.subTest(body[:120]):
                for failure in self.failures(self.client(partial(send, body))):
                    self.assertIsInstance(failure, vx.ServerError)
                    self.assertEqual(failure.details, ())

    def test_a_wait_of_thousands_of_digits_is_left_to_the_caller(self) -> None:
        refusal = error({"code": "unavailable", "message": "m"}, f"retry-after: {'9' * 5000}\r\n")
        for failure in self.failures(self.client(partial(send, refusal), max_retries=2)):
            self.assertEqual(failure.retry_after, 999_999_999)

    def test_the_time_limit_is_that_of_the_call_and_not_of_each_read(self) -> None:
        def drip(content_type: str) -> Answer:
            def answer(write: Callable[[bytes], object]) -> None:
                write(head(200, content_type) + b"\0\0\0\xff\xff")
                for _ in range(50):
                    write(b"\0")
                    time.sleep(0.1)

            return answer

        for index, content_type in enumerate(("application/proto", "application/connect+proto")):
            client = self.client(drip(content_type), timeout=0.5)
            began = time.monotonic()
            self.assertIsInstance(self.failures(client)[index], vx.TimedOutError)
            self.assertLess(time.monotonic() - began, 3)

    def test_a_server_that_never_answers_ends_the_call_in_time(self) -> None:
        left = threading.Event()
        self.addCleanup(left.set)

        def silent(write: Callable[[bytes], object]) -> None:
            left.wait()

        for failure in self.failures(self.client(silent, timeout=0.5)):
            self.assertIsInstance(failure, vx.TimedOutError)
        for failure in self.async_failures(silent):
            self.assertIsInstance(failure, vx.TimedOutError)

    def test_the_asynchronous_client_limits_all_headers_together(self) -> None:
        def drip(write: Callable[[bytes], object]) -> None:
            write(b"HTTP/1.1 200 x\r\n")
            for _ in range(50):
                write(b"x: y\r\n")
                time.sleep(0.1)

        for failure in self.async_failures(drip):
            self.assertIsInstance(failure, vx.TimedOutError)

    def async_failures(self, answer: Answer) -> Tuple[vx.VxError, vx.VxError]:
        url = self.url(answer)

        async def run() -> Tuple[vx.VxError, vx.VxError]:
            async with vx.AsyncClient(url=url, key=KEY, max_retries=0, timeout=0.5) as client:
                with self.assertRaises(vx.VxError) as unary:
                    await client.me()
                with self.assertRaises(vx.VxError) as streamed:
                    await client.stream(model="m", messages=[]).final_response()
                return unary.exception, streamed.exception

        return asyncio.run(run())

    def test_a_response_has_a_limit(self) -> None:
        sent = 0

        def endless(write: Callable[[bytes], object]) -> None:
            nonlocal sent
            write(head(200, "application/proto"))
            for _ in range(200):
                write(MEBIBYTE)
                sent += 1

        with self.assertRaisesRegex(vx.ServerError, "more than 67108864 bytes"):
            self.client(endless).me()
        self.assertLess(sent, 100)
        announced = head(200, "application/connect+proto") + b"\0\xff\xff\xff\xff"
        with self.assertRaisesRegex(vx.ServerError, "more than 67108864 bytes"):
            self.client(partial(send, announced)).stream(model="m", messages=[]).final_response()


    def test_a_tool_call_follows_the_one_before_it(self) -> None:
        for index in (-1, 1, 2**31 - 1):
            event = StreamGenerateResponse(delta=GenerateDelta(tool_call=ToolCallDelta(index=index)))
            data = head(200, "application/connect+proto") + frame(0, event.SerializeToString()) + frame(2, b"{}")
            with self.assertRaisesRegex(vx.ServerError, f"no tool call before {index}"):
                self.client(partial(send, data)).stream(model="m", messages=[]).final_response()

    def test_a_header_that_is_refused_is_not_shown_and_not_repeated(self) -> None:
        client = self.client(partial(send, b""), headers={"x-secret": "secret\n"}, max_retries=9)
        for failure in self.failures(client):
            self.assertIsInstance(failure, vx.InvalidRequestError)
            self.assertNotIn("secret", repr(failure))


class Keys(unittest.TestCase):
    def test_spaces_around_a_key_are_ignored(self) -> None:
        for key in (f" {KEY}\n", f"{KEY}\r\n"):
            with self.assertRaises(vx.ConnectionFailedError) as caught:
                vx.Client(url="http://127.0.0.1:1", key=key, max_retries=0).me()
            self.assertNotIn(KEY, "".join(traceback.format_exception(None, caught.exception, None)))

    def test_a_key_that_no_header_can_have_is_refused_and_not_shown(self) -> None:
        for rest in ("\nx", "\x01", "\u2026", " x"):
            with self.assertRaises(ValueError) as caught:
                vx.AsyncClient(key=KEY + rest)
            self.assertNotIn(KEY, repr(caught.exception))


if __name__ == "__main__":
    unittest.main()
