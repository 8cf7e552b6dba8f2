"""OpenAI's own client for Python: tools, structured output, reasoning, responses and embeddings."""

import os
import unittest

import openai
from sandbox import BASE_URL, CALL_WEATHER, EMBEDDING_MODEL, HELLO, MODEL, REPLY, Event, Weather, is_unit


def client(key="VX_KEY"):
    return openai.OpenAI(base_url=BASE_URL, api_key=os.environ[key], max_retries=0)


class Chat(unittest.TestCase):
    def test_a_tool_result_goes_back_with_the_message_that_called(self):
        tools = [openai.pydantic_function_tool(Weather, name="weather")]
        messages = [{"role": "user", "content": CALL_WEATHER}]
        first = client().chat.completions.parse(model=MODEL, messages=messages, tools=tools)
        self.assertEqual(first.choices[0].finish_reason, "tool_calls")
        (call,) = first.choices[0].message.tool_calls
        self.assertIsInstance(call.function.parsed_arguments, Weather)
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = client().chat.completions.create(model=MODEL, messages=messages, tools=tools)
        self.assertTrue(second.choices[0].message.content.startswith(REPLY))
        self.assertEqual(second.usage.total_tokens, second.usage.prompt_tokens + second.usage.completion_tokens)

    def test_parse_returns_an_object_of_the_class(self):
        reply = client().chat.completions.parse(model=MODEL, messages=HELLO, response_format=Event)
        self.assertIsInstance(reply.choices[0].message.parsed, Event)

    def test_a_stream_of_tool_arguments_makes_a_valid_call(self):
        tools = [openai.pydantic_function_tool(Weather, name="weather")]
        messages = [{"role": "user", "content": CALL_WEATHER}]
        with client().chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            deltas = [event.arguments_delta for event in stream if event.type.endswith("arguments.delta")]
            final = stream.get_final_completion()
        (call,) = final.choices[0].message.tool_calls
        self.assertEqual("".join(deltas), call.function.arguments)
        self.assertIsInstance(call.function.parsed_arguments, Weather)


class Responses(unittest.TestCase):
    def test_a_reply_has_text_and_usage_that_adds_up(self):
        reply = client().responses.create(model=MODEL, instructions="Be brief.", input="Hello")
        self.assertTrue(reply.output_text.startswith(REPLY))
        self.assertEqual(reply.usage.total_tokens, reply.usage.input_tokens + reply.usage.output_tokens)

    def test_a_function_result_goes_back_with_the_output_of_the_first_reply(self):
        tools = [openai.pydantic_function_tool(Weather, name="weather")["function"] | {"type": "function"}]
        history = [{"role": "user", "content": CALL_WEATHER.replace("]]", " reasoning=8]]")}]
        first = client().responses.create(
            model=MODEL, input=history, tools=tools, include=["reasoning.encrypted_content"]
        )
        self.assertIn("reasoning", [item.type for item in first.output])
        (call,) = [item for item in first.output if item.type == "function_call"]
        Weather.model_validate_json(call.arguments)
        history += first.output
        history += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        second = client().responses.create(model=MODEL, input=history, tools=tools)
        self.assertTrue(second.output_text.startswith(REPLY))

    def test_parse_returns_an_object_of_the_class(self):
        reply = client().responses.parse(model=MODEL, input="An event", text_format=Event)
        self.assertIsInstance(reply.output_parsed, Event)

    def test_the_pieces_of_a_stream_are_the_text_of_the_final_response(self):
        with client().responses.stream(model=MODEL, input="Hello") as stream:
            events = list(stream)
            final = stream.get_final_response()
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        self.assertTrue(text.startswith(REPLY))
        self.assertEqual(text, final.output_text)


class Embeddings(unittest.TestCase):
    def test_vectors_arrive_in_order(self):
        reply = client().embeddings.create(model=EMBEDDING_MODEL, input=["one", "two"])
        self.assertEqual([item.index for item in reply.data], [0, 1])
        self.assertTrue(all(is_unit(item.embedding) for item in reply.data))
        self.assertGreater(reply.usage.prompt_tokens, 0)

    def test_tokens_are_accepted_in_place_of_texts(self):
        # LangChain sends them.
        reply = client().embeddings.create(model=EMBEDDING_MODEL, input=[[15339, 1917], [9906]])
        self.assertEqual([is_unit(item.embedding) for item in reply.data], [True, True])
        self.assertEqual(reply.usage.prompt_tokens, 3)

    def test_a_shorter_vector_has_the_length_that_was_asked_for(self):
        reply = client().embeddings.create(model=EMBEDDING_MODEL, input="one", dimensions=64)
        self.assertEqual(len(reply.data[0].embedding), 64)


class Errors(unittest.TestCase):
    def ask(self, key):
        return client(key).responses.create(model=MODEL, input="Hello", max_output_tokens=16)

    def test_each_refusal_has_its_type(self):
        with self.assertRaises(openai.AuthenticationError):
            self.ask("VX_NO_KEY")
        with self.assertRaises(openai.APIStatusError) as raised:
            self.ask("VX_BROKE_KEY")
        self.assertEqual((raised.exception.status_code, raised.exception.code), (402, "insufficient_balance"))

    def test_too_many_requests_are_a_rate_limit_error(self):
        with self.assertRaises(openai.RateLimitError) as raised:
            # One request per minute; a minute may end between the calls.
            for _ in range(3):
                self.ask("VX_LIMITED_KEY")
        self.assertGreater(int(raised.exception.response.headers["retry-after"]), 0)


if __name__ == "__main__":
    unittest.main()
