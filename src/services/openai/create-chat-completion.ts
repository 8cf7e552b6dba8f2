import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateChatCompletionRequest,
  CreateChatCompletionResponseSchema,
} from "../../../gen/vx/openai/v1/chat_pb.js";
import { secondsOfId } from "../../domain/ids.ts";
import type { Call } from "../../gate/call.ts";
import type { Meter } from "../../metering/meter.ts";
import { askOfChat } from "./chat-ask.ts";
import { chatUsageOf, NO_LOGPROBS } from "./chat-reply.ts";

export async function createChatCompletion(
  meter: Meter,
  request: CreateChatCompletionRequest,
  call: Call,
): Promise<MessageInitShape<typeof CreateChatCompletionResponseSchema>> {
  const reply = await meter.complete(call, askOfChat(request));
  const message = { role: "assistant", content: reply.content };
  return {
    id: reply.id,
    object: "chat.completion",
    created: BigInt(secondsOfId(reply.id)),
    model: reply.model,
    choices: [{ index: 0, message, logprobs: NO_LOGPROBS, finishReason: reply.finishReason }],
    usage: chatUsageOf(reply),
    balanceMicros: reply.balanceMicros,
  };
}
