"""litellm as a client."""

import json
import os
import unittest

import litellm
from sandbox import BASE_URL, CALL_WEATHER, EMBEDDING_MODEL, HELLO, MODEL, REPLY, Event, Weather, is_unit

SERVER = {"api_base": BASE_URL, "api_key": os.environ["VX_KEY"], "num_retries": 0}
CHAT = {"model": f"openai/{MODEL}", **SERVER}
TOOL = {"name": "weather", "description": Weather.__doc__, "parameters": Weather.model_json_schema()}


class Client(unittest.TestCase):
    def test_a_tool_result_goes_back_with_the_message_that_called(self):
        tools = [{"type": "function", "function": TOOL}]
        messages = [{"role": "user", "content": CALL_WEATHER}]
        first = litellm.completion(messages=messages, tools=tools, **CHAT)
        (call,) = first.choices[0].message.tool_calls
        Weather.model_validate_json(call.function.arguments)
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = litellm.completion(messages=messages, tools=tools, **CHAT)
        self.assertTrue(second.choices[0].message.content.startswith(REPLY))
        self.assertEqual(second.usage.total_tokens, second.usage.prompt_tokens + second.usage.completion_tokens)

    def test_structured_output_matches_the_class(self):
        reply = litellm.completion(messages=HELLO, response_format=Event, **CHAT)
        Event.model_validate(json.loads(reply.choices[0].message.content))

    def test_the_pieces_of_a_stream_are_the_whole_text(self):
        chunks = list(litellm.completion(messages=HELLO, stream=True, **CHAT))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, litellm.completion(messages=HELLO, **CHAT).choices[0].message.content)

    def test_responses(self):
        reply = litellm.responses(input="Hello", **CHAT)
        self.assertTrue(reply.output_text.startswith(REPLY))

    def test_embeddings_are_unit_vectors(self):
        reply = litellm.embedding(model=f"openai/{EMBEDDING_MODEL}", input=["one", "two"], **SERVER)
        self.assertEqual([is_unit(item["embedding"]) for item in reply.data], [True, True])

    def test_errors_have_their_types(self):
        with self.assertRaises(litellm.AuthenticationError):
            litellm.completion(messages=HELLO, **{**CHAT, "api_key": os.environ["VX_NO_KEY"]})
        with self.assertRaises(litellm.APIError) as raised:
            litellm.completion(messages=HELLO, **{**CHAT, "api_key": os.environ["VX_BROKE_KEY"]})
        self.assertEqual(raised.exception.status_code, 402)


if __name__ == "__main__":
    unittest.main()
