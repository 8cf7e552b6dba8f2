"""Pydantic AI, over chat completions, the Responses API and the Messages API."""

import asyncio
import os
import unittest

from anthropic import AsyncAnthropic
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from sandbox import BASE_URL, CALL_WEATHER, MODEL, REPLY, Event


class Chat(unittest.TestCase):
    def model(self):
        return OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=os.environ["VX_KEY"]))

    def test_an_agent_calls_the_tool_and_returns_the_text_after_its_result(self):
        agent = Agent(self.model())
        cities = []

        @agent.tool_plain
        def weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        result = agent.run_sync(CALL_WEATHER)
        self.assertTrue(result.output.startswith(REPLY))
        self.assertEqual(len(cities), 1)
        self.assertGreater(result.usage.output_tokens, 0)

    def test_structured_output_is_an_object_of_the_class(self):
        self.assertIsInstance(Agent(self.model(), output_type=Event).run_sync("An event").output, Event)

    def test_structured_output_comes_after_the_result_of_a_tool(self):
        agent = Agent(self.model(), output_type=Event)
        cities = []

        @agent.tool_plain
        def weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        self.assertIsInstance(agent.run_sync(CALL_WEATHER).output, Event)
        self.assertEqual(len(cities), 1)

    def test_native_structured_output_is_an_object_of_the_class(self):
        agent = Agent(self.model(), output_type=NativeOutput(Event))
        self.assertIsInstance(agent.run_sync("An event").output, Event)

    def test_the_pieces_of_a_stream_are_the_whole_text(self):
        async def pieces():
            async with Agent(self.model()).run_stream("Hello") as stream:
                return [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]

        self.assertEqual("".join(asyncio.run(pieces())), Agent(self.model()).run_sync("Hello").output)


class Responses(Chat):
    def model(self):
        return OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=os.environ["VX_KEY"]))


class Messages(Chat):
    def model(self):
        client = AsyncAnthropic(base_url=os.environ["VX_URL"], auth_token=os.environ["VX_KEY"])
        return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))

    # The client knows by name which of Anthropic's models support it.
    test_native_structured_output_is_an_object_of_the_class = None


if __name__ == "__main__":
    unittest.main()
