"""LlamaIndex."""

import asyncio
import os
import unittest

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai_like import OpenAILike
from sandbox import BASE_URL, CALL_WEATHER, EMBEDDING_MODEL, MODEL, REPLY, Event, is_unit

KEY = os.environ["VX_KEY"]
LLM = OpenAILike(
    model=MODEL, api_base=BASE_URL, api_key=KEY, is_chat_model=True, is_function_calling_model=True, max_retries=0
)


class Client(unittest.TestCase):
    def test_an_agent_calls_the_tool_and_returns_the_text_after_its_result(self):
        cities = []

        def weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        async def run():
            agent = FunctionAgent(llm=LLM, tools=[FunctionTool.from_defaults(weather)])
            return await agent.run(CALL_WEATHER)

        self.assertTrue(str(asyncio.run(run())).startswith(REPLY))
        self.assertEqual(len(cities), 1)

    def test_structured_output_is_an_object_of_the_class(self):
        reply = LLM.as_structured_llm(Event).chat([ChatMessage("An event")])
        self.assertIsInstance(reply.raw, Event)

    def test_the_pieces_of_a_stream_are_the_whole_text(self):
        messages = [ChatMessage("Hello")]
        pieces = [piece.delta or "" for piece in LLM.stream_chat(messages)]
        self.assertEqual("".join(pieces), LLM.chat(messages).message.content)

    def test_a_completion_of_a_prompt(self):
        self.assertTrue(LLM.complete("Hello").text.startswith(REPLY))

    def test_embeddings_are_unit_vectors(self):
        embedding = OpenAIEmbedding(model_name=EMBEDDING_MODEL, api_base=BASE_URL, api_key=KEY)
        vectors = embedding.get_text_embedding_batch(["one", "two"])
        self.assertEqual([is_unit(vector) for vector in vectors], [True, True])


if __name__ == "__main__":
    unittest.main()
