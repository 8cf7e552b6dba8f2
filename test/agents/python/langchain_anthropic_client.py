"""LangChain's ChatAnthropic, with the variables that its users set."""

import os
import unittest
from unittest import mock

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from sandbox import CALL_WEATHER, MODEL, REPLY, Event

ADDRESS = f"{os.environ['VX_URL']}/anthropic"


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"It is sunny in {city}."


def model(**options):
    return ChatAnthropic(
        model=MODEL, base_url=ADDRESS, api_key=os.environ["VX_KEY"], max_retries=0, **options
    )


class Messages(unittest.TestCase):
    def test_the_default_maximum_of_output_tokens_is_accepted(self):
        self.assertTrue(model().invoke("Hello").text.startswith(REPLY))
        self.assertTrue(model(max_tokens=64_000).invoke("Hello").text.startswith(REPLY))

    def test_a_bound_tool_is_called_and_its_result_goes_back(self):
        bound = model().bind_tools([weather])
        messages = [HumanMessage(CALL_WEATHER)]
        messages.append(bound.invoke(messages))
        (call,) = messages[1].tool_calls
        messages.append(weather.invoke(call))
        self.assertTrue(bound.invoke(messages).text.startswith(REPLY))

    def test_structured_output_is_an_object_of_the_class(self):
        for method in ("json_schema", "function_calling"):
            with self.subTest(method):
                structured = model().with_structured_output(Event, method=method)
                self.assertIsInstance(structured.invoke("An event"), Event)

    def test_the_pieces_of_a_stream_are_the_whole_text(self):
        whole = model().invoke("Hello")
        chunks = list(model().stream("Hello"))
        self.assertEqual("".join(chunk.text for chunk in chunks), whole.text)
        tokens = sum((chunk.usage_metadata or {}).get("output_tokens", 0) for chunk in chunks)
        self.assertEqual(tokens, whole.usage_metadata["output_tokens"])

    def test_a_key_in_both_variables_of_the_sdk_works(self):
        key = os.environ["VX_KEY"]
        with mock.patch.dict(os.environ, {"ANTHROPIC_API_KEY": key, "ANTHROPIC_AUTH_TOKEN": key}):
            chat = ChatAnthropic(model=MODEL, base_url=ADDRESS, max_retries=0)
            self.assertTrue(chat.invoke("Hello").text.startswith(REPLY))


if __name__ == "__main__":
    unittest.main()
