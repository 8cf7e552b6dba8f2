"""Strands Agents as a client of Anthropic's API."""

import os
import unittest

from sandbox import CALL_WEATHER, MODEL, REPLY, Event
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel

cities = []


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    cities.append(city)
    return f"It is sunny in {city}."


def agent(**options):
    client = {"base_url": f"{os.environ['VX_URL']}/anthropic", "api_key": os.environ["VX_KEY"]}
    model = AnthropicModel(client_args=client, model_id=MODEL, max_tokens=400)
    return Agent(model=model, callback_handler=None, **options)


class Client(unittest.TestCase):
    def test_a_tool_is_called_and_its_result_goes_back(self):
        result = agent(tools=[weather])(CALL_WEATHER)
        self.assertEqual(result.stop_reason, "end_turn")
        self.assertTrue(str(result).startswith(REPLY))
        self.assertEqual(len(cities), 1)

    def test_structured_output_is_an_object_of_the_class(self):
        self.assertIsInstance(agent().structured_output(Event, "An event"), Event)


if __name__ == "__main__":
    unittest.main()
