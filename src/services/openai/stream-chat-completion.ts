import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  StreamChatCompletionRequest,
  StreamChatCompletionResponseSchema,
} from "../../../gen/vx/openai/v1/chat_pb.js";
import { secondsOfId } from "../../domain/ids.ts";
import type { Call } from "../../gate/call.ts";
import type { Meter } from "../../metering/meter.ts";
import { askOfChat } from "./chat-ask.ts";
import { chatUsageOf, NO_LOGPROBS } from "./chat-reply.ts";

type Chunk = MessageInitShape<typeof StreamChatCompletionResponseSchema>;

/** Pieces, one that says why the reply ended, and, if it was asked for, one that says what was used. */
export async function* streamChatCompletion(
  meter: Meter,
  request: StreamChatCompletionRequest,
  call: Call,
): AsyncGenerator<Chunk> {
  const ask = askOfChat(request);
  let head: Pick<Chunk, "id" | "object" | "created" | "model"> | undefined;
  for await (const piece of meter.stream(call, ask)) {
    const role = head ? {} : { role: "assistant" };
    head ??= headOf(piece.kind === "delta" ? piece.id : piece.reply.id, ask.model);
    if (piece.kind === "delta") {
      const delta = { ...role, content: piece.content };
      yield { ...head, choices: [{ index: 0, delta, logprobs: NO_LOGPROBS }] };
      continue;
    }
    const { reply } = piece;
    const { finishReason } = reply;
    yield { ...head, choices: [{ index: 0, delta: role, logprobs: NO_LOGPROBS, finishReason }] };
    if (request.streamOptions?.includeUsage) {
      yield { ...head, choices: [], usage: chatUsageOf(reply), balanceMicros: reply.balanceMicros };
    }
  }
}

function headOf(id: string, model: string) {
  return { id, object: "chat.completion.chunk", created: BigInt(secondsOfId(id)), model };
}
