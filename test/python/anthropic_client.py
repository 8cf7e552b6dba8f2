"""Anthropic's own client for Python, with a Bearer token: only the address and the token are changed."""

import os
import unittest
from unittest import mock

import anthropic
from anthropic import beta_tool
from sandbox import CALL_WEATHER, HELLO, MODEL, REPLY, Event, Weather

LIMIT = 400
TOOL = {"name": "weather", "description": Weather.__doc__, "input_schema": Weather.model_json_schema()}


def client(key="VX_KEY"):
    return anthropic.Anthropic(base_url=os.environ["VX_URL"], auth_token=os.environ[key], max_retries=0)


class Messages(unittest.TestCase):
    def test_a_reply_has_text_and_usage(self):
        reply = client().messages.create(model=MODEL, max_tokens=LIMIT, system="Be brief.", messages=HELLO)
        self.assertTrue(reply.content[0].text.startswith(REPLY))
        self.assertEqual(reply.stop_reason, "end_turn")
        self.assertGreater(reply.usage.input_tokens, 0)
        self.assertGreater(reply.usage.output_tokens, 0)

    def test_a_tool_result_goes_back_with_the_content_of_the_first_reply(self):
        messages = [{"role": "user", "content": CALL_WEATHER.replace("]]", " reasoning=8]]")}]
        first = client().messages.create(model=MODEL, max_tokens=LIMIT, tools=[TOOL], messages=messages)
        self.assertEqual(first.stop_reason, "tool_use")
        self.assertEqual([block.type for block in first.content], ["thinking", "tool_use"])
        call = first.content[-1]
        Weather.model_validate(call.input)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = client().messages.create(model=MODEL, max_tokens=LIMIT, tools=[TOOL], messages=messages)
        self.assertEqual(second.stop_reason, "end_turn")
        self.assertTrue(second.content[-1].text.startswith(REPLY))

    def test_the_tool_runner_calls_the_function(self):
        cities = []

        @beta_tool
        def weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        messages = [{"role": "user", "content": CALL_WEATHER}]
        runner = client().beta.messages.tool_runner(
            model=MODEL, max_tokens=LIMIT, tools=[weather], messages=messages
        )
        final = runner.until_done()
        self.assertTrue(final.content[-1].text.startswith(REPLY))
        self.assertEqual(len(cities), 1)

    def test_parse_returns_an_object_of_the_class(self):
        reply = client().messages.parse(model=MODEL, max_tokens=LIMIT, messages=HELLO, output_format=Event)
        self.assertIsInstance(reply.parsed_output, Event)

    def test_count_tokens_counts_the_input_of_a_call(self):
        counted = client().messages.count_tokens(model=MODEL, messages=HELLO, tools=[TOOL])
        reply = client().messages.create(model=MODEL, max_tokens=1, messages=HELLO, tools=[TOOL])
        self.assertEqual(counted.input_tokens, reply.usage.input_tokens)


class Streams(unittest.TestCase):
    def test_the_pieces_are_the_text_of_the_final_message(self):
        with client().messages.stream(model=MODEL, max_tokens=LIMIT, messages=HELLO) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertTrue(text.startswith(REPLY))
        self.assertEqual(text, final.content[-1].text)
        self.assertGreater(final.usage.output_tokens, 0)

    def test_tool_arguments_make_a_valid_call(self):
        choice = {"type": "tool", "name": "weather"}
        with client().messages.stream(
            model=MODEL, max_tokens=LIMIT, messages=HELLO, tools=[TOOL], tool_choice=choice
        ) as stream:
            final = stream.get_final_message()
        self.assertEqual(final.stop_reason, "tool_use")
        Weather.model_validate(final.content[-1].input)

    def test_a_failure_in_the_middle_is_an_error(self):
        messages = [{"role": "user", "content": "[[tokens=50 fail_after=20]] Hello"}]
        with self.assertRaises(anthropic.APIStatusError):
            with client().messages.stream(model=MODEL, max_tokens=LIMIT, messages=messages) as stream:
                stream.until_done()


class Variables(unittest.TestCase):
    def test_the_api_key_applies_if_both_are_set_and_an_option_before_them(self):
        key = os.environ["VX_KEY"]

        def ask(key_variable, token_variable, **options):
            both = {"ANTHROPIC_API_KEY": key_variable, "ANTHROPIC_AUTH_TOKEN": token_variable}
            with mock.patch.dict(os.environ, both):
                asking = anthropic.Anthropic(base_url=os.environ["VX_URL"], max_retries=0, **options)
                return asking.messages.create(model=MODEL, max_tokens=LIMIT, messages=HELLO).type

        self.assertEqual(ask(key, "other"), "message")
        with self.assertRaisesRegex(anthropic.AuthenticationError, "header 'Authorization'"):
            ask("other", key)
        self.assertEqual(ask("other", "other", auth_token=key), "message")
        self.assertEqual(ask("other", "other", api_key=key), "message")


class Errors(unittest.TestCase):
    def test_an_api_that_is_not_here_is_named(self):
        with self.assertRaisesRegex(anthropic.BadRequestError, "does not support message batches"):
            client().messages.batches.list()

    def ask(self, key):
        return client(key).messages.create(model=MODEL, max_tokens=1, messages=HELLO)

    def test_each_refusal_has_its_type(self):
        with self.assertRaises(anthropic.AuthenticationError):
            self.ask("VX_NO_KEY")
        with self.assertRaises(anthropic.APIStatusError) as raised:
            self.ask("VX_BROKE_KEY")
        self.assertEqual(raised.exception.status_code, 402)

    def test_too_many_requests_are_a_rate_limit_error(self):
        with self.assertRaises(anthropic.RateLimitError):
            # One request per minute; a minute may end between the calls.
            for _ in range(3):
                self.ask("VX_LIMITED_KEY")


if __name__ == "__main__":
    unittest.main()
