"""litellm as a client of Anthropic's API."""

import os
import unittest

import litellm
from sandbox import CALL_WEATHER, HELLO, MODEL, REPLY, Weather

SERVER = {"api_base": f"{os.environ['VX_URL']}/anthropic", "api_key": os.environ["VX_KEY"], "num_retries": 0}
CHAT = {"model": f"anthropic/{MODEL}", **SERVER}
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

    def test_the_pieces_of_a_stream_are_the_whole_text(self):
        chunks = list(litellm.completion(messages=HELLO, stream=True, **CHAT))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, litellm.completion(messages=HELLO, **CHAT).choices[0].message.content)

    def test_a_key_that_is_not_valid_is_an_authentication_error(self):
        with self.assertRaises(litellm.AuthenticationError):
            litellm.completion(messages=HELLO, **{**CHAT, "api_key": os.environ["VX_NO_KEY"]})


if __name__ == "__main__":
    unittest.main()
