"""OpenAI's own client for Python against a running server: only the address and the key are changed."""

import os
import unittest

import openai

MODEL = "vx-sandbox-small"
HELLO = [{"role": "user", "content": "Hello"}]


def client(key="VX_KEY"):
    return openai.OpenAI(base_url=f"{os.environ['VX_URL']}/v1", api_key=os.environ[key], max_retries=0)


class Replies(unittest.TestCase):
    def test_a_reply_has_text_and_usage(self):
        reply = client().chat.completions.create(model=MODEL, messages=HELLO, max_completion_tokens=3)
        self.assertEqual(reply.choices[0].message.content, "This is a")
        self.assertEqual(reply.choices[0].message.role, "assistant")
        self.assertEqual(reply.choices[0].finish_reason, "length")
        self.assertEqual(reply.usage.completion_tokens, 3)
        self.assertGreater(reply.usage.cost_micros, 0)

    def test_messages_of_the_client_go_back_as_they_came(self):
        first = client().chat.completions.create(model=MODEL, messages=HELLO)
        messages = [*HELLO, first.choices[0].message, {"role": "user", "content": "Go on."}]
        self.assertTrue(client().chat.completions.create(model=MODEL, messages=messages).choices)

    def test_stop_and_text_parts(self):
        parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
        reply = client().chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": parts}], stop=["reply"]
        )
        self.assertEqual(reply.choices[0].message.content, "This is a ")

    def test_an_idempotency_key_gives_the_same_reply(self):
        headers = {"Idempotency-Key": "python-1"}
        one, other = (
            client().chat.completions.create(model=MODEL, messages=HELLO, extra_headers=headers) for _ in range(2)
        )
        self.assertEqual(one, other)


class Streams(unittest.TestCase):
    def test_pieces_end_with_reason_and_usage(self):
        whole = client().chat.completions.create(model=MODEL, messages=HELLO)
        chunks = list(
            client().chat.completions.create(
                model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
            )
        )
        usage = chunks.pop()
        self.assertEqual(usage.choices, [])
        self.assertEqual(usage.usage.total_tokens, whole.usage.total_tokens)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        self.assertEqual(text, whole.choices[0].message.content)

    def test_the_helper_puts_a_stream_together(self):
        whole = client().chat.completions.create(model=MODEL, messages=HELLO)
        with client().chat.completions.stream(model=MODEL, messages=HELLO) as stream:
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, whole.choices[0].message.content)
        self.assertEqual(final.choices[0].message.role, "assistant")
        self.assertEqual(final.choices[0].finish_reason, "stop")

    def test_a_failure_in_the_middle_is_an_error(self):
        messages = [{"role": "user", "content": "[[tokens=50 fail_after=20]] Hello"}]
        with self.assertRaises(openai.APIError) as raised:
            list(client().chat.completions.create(model=MODEL, messages=messages, stream=True))
        self.assertEqual(raised.exception.code, "upstream_error")


class Models(unittest.TestCase):
    def test_models_are_listed_and_retrieved(self):
        self.assertEqual([model.id for model in client().models.list()], ["vx-sandbox-embed", "vx-sandbox-large", MODEL])
        self.assertEqual(client().models.retrieve(MODEL).owned_by, "vx")


class Errors(unittest.TestCase):
    def refusal(self, kind, key="VX_KEY", **fields):
        with self.assertRaises(kind) as raised:
            client(key).chat.completions.create(**{"model": MODEL, "messages": HELLO, **fields})
        return raised.exception

    def test_each_refusal_has_its_type(self):
        error = self.refusal(openai.BadRequestError, n=2)
        self.assertEqual((error.code, error.param), ("invalid_argument", "n"))
        error = self.refusal(openai.NotFoundError, model="gpt-4o")
        self.assertEqual((error.code, error.param), ("model_not_found", "model"))
        self.assertEqual(self.refusal(openai.AuthenticationError, key="VX_NO_KEY").code, "invalid_api_key")
        error = self.refusal(openai.APIStatusError, key="VX_BROKE_KEY")
        self.assertEqual((error.status_code, error.code), (402, "insufficient_balance"))

    def test_an_api_that_is_not_here_is_named(self):
        recording = ("speech.wav", bytes(3_000_000))
        for name, call in {
            "batches": lambda: client().batches.list(),
            "audio": lambda: client().audio.transcriptions.create(model=MODEL, file=recording),
            "stored responses": lambda: client().responses.retrieve("resp_1"),
        }.items():
            with self.subTest(name), self.assertRaisesRegex(openai.BadRequestError, f"does not support {name}"):
                call()


if __name__ == "__main__":
    unittest.main()
