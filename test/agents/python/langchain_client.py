"""LangChain for Python, over chat completions and over the Responses API."""

import os
import unittest

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from openai import APIStatusError
from sandbox import BASE_URL, CALL_WEATHER, EMBEDDING_MODEL, MODEL, REPLY, Event, is_unit


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"It is sunny in {city}."


def model(key="VX_KEY", **options):
    return ChatOpenAI(model=MODEL, base_url=BASE_URL, api_key=os.environ[key], max_retries=0, **options)


class Chat(unittest.TestCase):
    options = {}

    def test_a_bound_tool_is_called_and_its_result_goes_back(self):
        bound = model(**self.options).bind_tools([weather])
        messages = [HumanMessage(CALL_WEATHER)]
        messages.append(bound.invoke(messages))
        (call,) = messages[1].tool_calls
        messages.append(weather.invoke(call))
        self.assertTrue(messages[2].content.startswith("It is sunny in "))
        self.assertTrue(bound.invoke(messages).text.startswith(REPLY))

    def test_structured_output_is_an_object_of_the_class(self):
        for method in ("json_schema", "function_calling"):
            with self.subTest(method):
                structured = model(**self.options).with_structured_output(Event, method=method)
                self.assertIsInstance(structured.invoke("An event"), Event)

    def test_the_pieces_of_a_stream_are_the_whole_text(self):
        whole = model(**self.options).invoke("Hello")
        chunks = list(model(stream_usage=True, **self.options).stream("Hello"))
        self.assertEqual("".join(chunk.text for chunk in chunks), whole.text)
        tokens = sum((chunk.usage_metadata or {}).get("output_tokens", 0) for chunk in chunks)
        self.assertEqual(tokens, whole.usage_metadata["output_tokens"])


class Responses(Chat):
    options = {"use_responses_api": True}


class Others(unittest.TestCase):
    def test_embeddings_are_unit_vectors(self):
        # By default the client sends tokens, for which it downloads a tokenizer.
        embeddings = OpenAIEmbeddings(
            model=EMBEDDING_MODEL,
            base_url=BASE_URL,
            api_key=os.environ["VX_KEY"],
            check_embedding_ctx_length=False,
        )
        vectors = embeddings.embed_documents(["one", "two"])
        self.assertEqual([is_unit(vector) for vector in vectors], [True, True])

    def test_an_empty_balance_is_an_error_with_the_status_402(self):
        with self.assertRaises(APIStatusError) as raised:
            model("VX_BROKE_KEY").invoke("Hello")
        self.assertEqual(raised.exception.status_code, 402)


if __name__ == "__main__":
    unittest.main()
