"""OpenAI's and Anthropic's own clients for Python with their default retries, and keys with limits."""

import json
import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai

URL = os.environ["VX_URL"]
WAITING = json.loads(os.environ["VX_WAITING_KEYS"])
USED_UP = json.loads(os.environ["VX_USED_UP_KEYS"])


class Sdk:
    """One client, with the statuses of all responses, those of its retries among them."""

    def __init__(self, key):
        self.statuses = []
        recording = {"response": [lambda response: self.statuses.append(response.status_code)]}
        self.client = self.connect(key, self.package.DefaultHttpxClient(event_hooks=recording))

    def ask(self, content):
        messages = [{"role": "user", "content": content}]
        limit = int(os.environ["VX_MAX_TOKENS"])
        return self.messages().create(model=os.environ["VX_MODEL"], max_tokens=limit, messages=messages)


class OpenAi(Sdk):
    name, package = "openai", openai

    def connect(self, key, http_client):
        return openai.OpenAI(base_url=f"{URL}/v1", api_key=key, http_client=http_client)

    def messages(self):
        return self.client.chat.completions


class Anthropic(Sdk):
    name, package = "anthropic", anthropic

    def connect(self, key, http_client):
        return anthropic.Anthropic(base_url=URL, auth_token=key, http_client=http_client)

    def messages(self):
        return self.client.messages


def refused_once(sdk_class, key):
    """Two calls at the same time, of which one waits for the other."""
    sdk = sdk_class(key)
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(sdk.ask, [os.environ["VX_SLOW_CALL"]] * 2))
    return len(replies), sdk.statuses.count(200), len(sdk.statuses) > 2


class Limits(unittest.TestCase):
    def test_a_call_that_only_running_calls_refuse_succeeds_by_itself(self):
        with ThreadPoolExecutor() as pool:
            running = {
                (sdk.name, metric): pool.submit(refused_once, sdk, key)
                for sdk in (OpenAi, Anthropic)
                for metric, key in WAITING[sdk.name].items()
            }
        for case, outcome in running.items():
            with self.subTest(case):
                self.assertEqual(outcome.result(), (2, 2, True))

    def test_a_call_that_is_refused_until_the_next_window_is_not_repeated(self):
        codes = {
            "generations": (429, "generation_limit_exceeded"),
            "cost": (402, "budget_exceeded"),
            "tokens": (429, "token_limit_exceeded"),
        }
        for sdk_class in (OpenAi, Anthropic):
            for metric, key in USED_UP[sdk_class.name].items():
                with self.subTest(sdk=sdk_class.name, metric=metric):
                    status, code = codes[metric]
                    sdk = sdk_class(key)
                    sdk.ask(os.environ["VX_LARGE_CALL"])
                    kind = sdk.package.RateLimitError if status == 429 else sdk.package.APIStatusError
                    with self.assertRaises(kind) as raised:
                        sdk.ask(os.environ["VX_LARGE_CALL"])
                    self.assertEqual(sdk.statuses, [200, status])
                    error = raised.exception
                    self.assertEqual(error.response.headers["x-should-retry"], "false")
                    self.assertEqual(error.response.json()["error"]["code"], code)
                    self.assertIn('"resets_at"', error.response.text)


if __name__ == "__main__":
    unittest.main()
