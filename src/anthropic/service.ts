import { MessagesService } from "../../gen/vx/anthropic/v1/messages_pb.js";
import { defineService } from "../api/define-service.ts";
import { MESSAGES } from "../rules/compatible-members.ts";
import { messageEvents, messageOf } from "./reply.ts";
import { generationRequestOfCount, generationRequestOfMessage } from "./request.ts";

export const messagesService = defineService(
  MessagesService,
  {
    createMessage: {
      prompt: (_, request) => generationRequestOfMessage(request),
      respond: messageOf,
    },
    streamMessage: {
      prompt: (_, request) => generationRequestOfMessage(request),
      respond: messageEvents,
    },
    countTokens: async ({ meter }, request, { key, signal }) => {
      const { accountId } = key;
      const counted = await generationRequestOfCount(request);
      return { inputTokens: BigInt(await meter.countInput(key, counted, { signal, accountId })) };
    },
  },
  MESSAGES,
);
