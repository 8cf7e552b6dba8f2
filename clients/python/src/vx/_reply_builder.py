"""Puts the deltas of a stream together, as the server does for a reply that is not streamed."""

from __future__ import annotations

from typing import Optional

from ._errors import ServerError
from ._messages.generate_pb2 import GenerateDelta, GenerateDone, GenerateResponse, Message, Reasoning


class ReplyBuilder:
    def __init__(self) -> None:
        self.message = Message(role="assistant", content="")
        self.done: Optional[GenerateDone] = None
        self._is_reasoning_open = False

    def append(self, delta: GenerateDelta) -> None:
        self.message.content += delta.content
        if delta.HasField("reasoning"):
            self._append_reasoning(delta.reasoning)
        if delta.HasField("tool_call"):
            part = delta.tool_call
            if not 0 <= part.index <= len(self.message.tool_calls):
                raise ServerError(f"the response is not valid: no tool call before {part.index}", code="internal")
            if part.index == len(self.message.tool_calls):
                self.message.tool_calls.add()
            call = self.message.tool_calls[part.index]
            call.id = part.id or call.id
            call.name = part.name or call.name
            call.arguments += part.arguments

    def _append_reasoning(self, part: Reasoning) -> None:
        """A signature or an encrypted text ends a block."""
        block = self.message.reasoning[-1] if self._is_reasoning_open else self.message.reasoning.add()
        block.text += part.text
        block.signature += part.signature
        block.encrypted += part.encrypted
        self._is_reasoning_open = not part.signature and not part.encrypted

    def response(self) -> GenerateResponse:
        done = self.done
        if done is None:
            raise RuntimeError("The stream was not read to its end.")
        return GenerateResponse(
            id=done.id,
            model=done.model,
            message=self.message,
            finish_reason=done.finish_reason,
            usage=done.usage,
            balance_micros=done.balance_micros,
            max_tokens=done.max_tokens if done.HasField("max_tokens") else None,
        )
