"""Calls the server with the client that openapi-generator generated from its document."""

import json
import os

from openapi_client import ApiClient, ApiException, Configuration
from openapi_client.api.chat_service_api import ChatServiceApi
from openapi_client.api.generate_service_api import GenerateServiceApi
from openapi_client.api.ledger_service_api import LedgerServiceApi
from openapi_client.models.chat_message_input import ChatMessageInput
from openapi_client.models.chat_message_input_content import ChatMessageInputContent
from openapi_client.models.create_chat_completion_request import CreateChatCompletionRequest
from openapi_client.models.generate_request import GenerateRequest
from openapi_client.models.message_input import MessageInput

client = ApiClient(Configuration(host=os.environ["VX_URL"], access_token=os.environ["VX_KEY"]))
api = GenerateServiceApi(client)
messages = [MessageInput(role="user", content="What is a ledger?")]

generated = api.generate(GenerateRequest(model="vx-sandbox-small", messages=messages)).message
assert generated is not None

content = ChatMessageInputContent("Hi")
message = ChatMessageInput(role="user", content=content)
request = CreateChatCompletionRequest(model="vx-sandbox-small", messages=[message])
chat = ChatServiceApi(client).create_chat_completion(request).choices[0].message
assert chat is not None

refused = None
try:
    api.generate(GenerateRequest(model="none", messages=messages))
except ApiException as error:
    refused = json.loads(error.body or "")["error"]["code"]

ledger = LedgerServiceApi(client).list_entries(page_size=1).entries

print(
    json.dumps(
        {
            "generated": generated.content,
            "chat": chat.content,
            "refused": refused,
            "ledger": ledger[0].kind,
        }
    )
)
