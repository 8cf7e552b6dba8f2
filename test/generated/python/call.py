"""Calls the server with the client that openapi-python-client generated from its document."""

import json
import os

from vx_client import AuthenticatedClient
from vx_client.api.chat_service import create_chat_completion
from vx_client.api.generate_service import generate
from vx_client.api.ledger_service import list_entries
from vx_client.models import (
    ChatMessageInput,
    ChatMessageInputRole,
    CreateChatCompletionRequest,
    CreateChatCompletionResult,
    ErrorBody,
    GenerateRequest,
    GenerateResult,
    ListEntriesResult,
    Message,
    MessageInput,
    MessageInputRole,
)

client = AuthenticatedClient(base_url=os.environ["VX_URL"], token=os.environ["VX_KEY"])
messages = [MessageInput(role=MessageInputRole.USER, content="What is a ledger?")]

generated = generate.sync(client=client, body=GenerateRequest(model="vx-sandbox-small", messages=messages))
assert isinstance(generated, GenerateResult)
assert isinstance(generated.message, Message)

chat = create_chat_completion.sync(
    client=client,
    body=CreateChatCompletionRequest(
        model="vx-sandbox-small",
        messages=[ChatMessageInput(role=ChatMessageInputRole.USER, content="Hi")],
        max_tokens=None,
        tools=[],
    ),
)
assert isinstance(chat, CreateChatCompletionResult)
reply = chat.choices[0].message
assert reply is not None

refused = generate.sync(client=client, body=GenerateRequest(model="none", messages=messages))
assert isinstance(refused, ErrorBody)

ledger = list_entries.sync(client=client, page_size=1)
assert isinstance(ledger, ListEntriesResult)

print(
    json.dumps(
        {
            "generated": generated.message.content,
            "chat": reply.content,
            "refused": refused.error.code.value,
            "ledger": ledger.entries[0].kind,
        }
    )
)
