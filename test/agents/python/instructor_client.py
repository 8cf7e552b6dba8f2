"""instructor, in each of its modes for OpenAI and Anthropic."""

import os
import unittest

import anthropic
import instructor
import openai
from instructor import Mode
from sandbox import BASE_URL, HELLO, MODEL, Event


class Objects(unittest.TestCase):
    def test_openai(self):
        client = openai.OpenAI(base_url=BASE_URL, api_key=os.environ["VX_KEY"])
        for mode in (Mode.TOOLS, Mode.JSON_SCHEMA, Mode.RESPONSES_TOOLS):
            with self.subTest(mode):
                create = instructor.from_openai(client, mode=mode).create
                self.assertIsInstance(create(model=MODEL, response_model=Event, messages=HELLO), Event)

    def test_anthropic(self):
        client = anthropic.Anthropic(base_url=os.environ["VX_URL"], auth_token=os.environ["VX_KEY"])
        create = instructor.from_anthropic(client, mode=Mode.ANTHROPIC_TOOLS).create
        self.assertIsInstance(create(model=MODEL, response_model=Event, messages=HELLO, max_tokens=400), Event)

    def test_a_stream_of_partial_objects(self):
        client = openai.OpenAI(base_url=BASE_URL, api_key=os.environ["VX_KEY"])
        parts = instructor.from_openai(client).create_partial(model=MODEL, response_model=Event, messages=HELLO)
        titles = [part.title for part in parts]
        self.assertGreater(len(titles), 1)
        self.assertTrue(titles[-1])


if __name__ == "__main__":
    unittest.main()
