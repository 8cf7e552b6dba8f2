"""Runs against a server: VX_URL and VX_KEY name it, VX_FAULT_URL a proxy in front of it that fails on demand."""

import asyncio
import os
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Dict, List, Tuple

import vx
from test_client import ClientCase, Fault

KEY_CREATED = ["key.created"]


def key_of(event: vx.Event) -> str:
    data = vx.event_data(event)
    assert isinstance(data, vx.KeyEvent)
    return data.key_id


class Events(ClientCase):
    def create_keys(self, count: int) -> List[str]:
        ids = []
        for _ in range(count):
            ids.append(self.client.keys.create(name=f"py-{uuid.uuid4().hex}").api_key.id)
            self.client.keys.revoke(ids[-1])
        return ids

    def test_events_are_listed_page_by_page(self) -> None:
        ids = self.create_keys(3)
        listed = [key_of(event) for event in self.client.events.list(types=KEY_CREATED, page_size=2)]
        self.assertEqual(listed[-3:], ids)

    def test_a_watch_continues_after_each_broken_connection(self) -> None:
        ids = self.create_keys(4)
        fault = Fault("times=3;cut=500")
        seen: List[str] = []
        for event in self.faulty.events.watch(types=KEY_CREATED, options=fault.options):
            seen.append(key_of(event))
            if seen[-1] == ids[-1]:
                break
        self.assertEqual(seen[-4:], ids)
        self.assertEqual(len(set(seen)), len(seen))
        self.assertGreater(len(fault.attempts()), 2)

    def test_the_asynchronous_watch_continues_too(self) -> None:
        ids = self.create_keys(4)
        fault = Fault("times=3;cut=500")

        async def watch() -> List[str]:
            seen: List[str] = []
            async with vx.AsyncClient(url=os.environ["VX_FAULT_URL"]) as client:
                async for event in client.events.watch(types=KEY_CREATED, options=fault.options):
                    seen.append(key_of(event))
                    if seen[-1] == ids[-1]:
                        break
            return seen

        self.assertEqual(asyncio.run(watch())[-4:], ids)

    def test_a_watch_from_now_gets_only_later_events(self) -> None:
        self.create_keys(1)
        fault = Fault("times=2;status=503")
        first: List[vx.Event] = []

        def watch() -> None:
            first.append(next(iter(self.faulty.events.watch(types=KEY_CREATED, after="now", options=fault.options))))

        thread = threading.Thread(target=watch)
        thread.start()
        # The third attempt finds where "now" is, and the fourth one is the watch.
        while len(fault.attempts()) < 4:
            pass
        [id] = self.create_keys(1)
        thread.join()
        self.assertEqual(key_of(first[0]), id)

    def test_a_watch_ends_with_an_error_that_does_not_heal(self) -> None:
        unknown = vx.Client(key=os.environ["VX_NO_KEY"])
        self.addCleanup(unknown.close)
        self.assertEqual(self.failure(lambda: next(iter(unknown.events.watch()))).reason, "invalid_api_key")
        fault = Fault("times=9;status=503")
        options = fault.options.copy()
        options["max_retries"] = 1
        self.failure(lambda: next(iter(self.faulty.events.watch(options=options))))
        self.assertEqual(len(fault.attempts()), 2)


class Webhooks(ClientCase):
    def test_a_webhook_is_created_tested_verified_and_deleted(self) -> None:
        requests: List[Tuple[bytes, Dict[str, str]]] = []

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                requests.append((body, dict(self.headers.items())))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Receiver)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        created = self.client.webhooks.create(url=f"http://127.0.0.1:{server.server_port}/")
        id, secret = created.webhook.id, created.secret
        self.assertEqual(self.client.webhooks.test(id).status, 204)
        body, headers = requests[0]
        data = vx.event_data(vx.verify_webhook(body, headers, secret))
        assert isinstance(data, vx.WebhookTestEvent)
        self.assertEqual(data.webhook_id, id)
        with self.assertRaises(vx.WebhookVerificationError):
            vx.verify_webhook(body + b" ", headers, secret)
        with self.assertRaises(vx.WebhookVerificationError):
            vx.verify_webhook(body, {**headers, "webhook-timestamp": "1"}, secret)
        self.assertEqual(self.client.webhooks.update(webhook_id=id, state="paused").state, "paused")
        self.assertNotEqual(self.client.webhooks.rotate(id).secret, secret)
        for delivery in self.client.webhooks.deliveries(webhook_id=id):
            self.assertTrue(delivery.event_id)
        self.client.webhooks.redeliver(webhook_id=id)
        self.assertIn(id, [each.id for each in self.client.webhooks.list()])
        self.client.webhooks.delete(id)
        self.assertEqual(self.failure(lambda: self.client.webhooks.get(id)).reason, "not_found")
