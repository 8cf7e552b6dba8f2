import type { MessageInitShape } from "@bufbuild/protobuf";
import { ChatService, type StreamChatCompletionResponseSchema } from "../../../gen/vx/openai/v1/chat_pb.js";
import { defineService } from "../../api/define-service.ts";
import { secondsOfId } from "../../domain/ids.ts";
import { CHAT } from "../../rules/compatible-members.ts";
import { chatDeltaOf, chatReplyOf, chatUsageOf, NO_LOGPROBS } from "./reply.ts";
import { generationRequestOfChat } from "./request.ts";

type Chunk = MessageInitShape<typeof StreamChatCompletionResponseSchema>;

export const chatService = defineService(
  ChatService,
  {
    createChatCompletion: {
      prompt: (_, request) => generationRequestOfChat(request),
      respond: (reply) => ({
        id: reply.id,
        object: "chat.completion",
        created: BigInt(secondsOfId(reply.id)),
        model: reply.model,
        choices: [{ index: 0, message: chatReplyOf(reply.output), logprobs: NO_LOGPROBS, finishReason: reply.finishReason }],
        usage: chatUsageOf(reply),
        balanceMicros: reply.balanceMicros,
      }),
    },
    streamChatCompletion: {
      prompt: (_, request) => generationRequestOfChat(request),
      /** Sends the pieces, then a chunk with the finish reason, then, if requested, a chunk with the usage. */
      respond: async function* (pieces, request) {
        let head: Pick<Chunk, "id" | "object" | "created" | "model"> | undefined;
        for await (const piece of pieces) {
          const delta = piece.kind === "delta" ? chatDeltaOf(piece.delta) : {};
          if (!delta) continue;
          if (!head) delta.role = "assistant";
          head ??= headOf(piece.kind === "delta" ? piece : piece.reply);
          if (piece.kind === "delta") {
            yield { ...head, choices: [{ index: 0, delta, logprobs: NO_LOGPROBS }] };
            continue;
          }
          const { reply } = piece;
          const { finishReason } = reply;
          yield { ...head, choices: [{ index: 0, delta, logprobs: NO_LOGPROBS, finishReason }] };
          if (request.streamOptions?.includeUsage) {
            yield { ...head, choices: [], usage: chatUsageOf(reply), balanceMicros: reply.balanceMicros };
          }
        }
      },
    },
  },
  CHAT,
);

function headOf({ id, model }: { readonly id: string; readonly model: string }) {
  return { id, object: "chat.completion.chunk", created: BigInt(secondsOfId(id)), model };
}
