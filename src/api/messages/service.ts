import { MessagesService } from "../../../gen/vx/anthropic/v1/messages_pb.js";
import { MESSAGES } from "../compatible-members.ts";
import { defineService } from "../define-service.ts";
import { messageEvents, messageOf } from "./reply.ts";
import { generationRequestOfCount, generationRequestOfMessage } from "./request.ts";

export const messagesService = defineService(
  MessagesService,
  {
    createMessage: async ({ meter }, request, call) => {
      const caller = call.caller(request);
      return messageOf(await meter.complete(caller, await generationRequestOfMessage(request)));
    },
    streamMessage: async function* ({ meter }, request, call) {
      const caller = call.caller(request);
      yield* messageEvents(meter.stream(caller, await generationRequestOfMessage(request)));
    },
    countTokens: async ({ meter }, request, { key, signal }) => {
      const { accountId } = key;
      const counted = await generationRequestOfCount(request);
      return { inputTokens: BigInt(await meter.countInput(key, counted, { signal, accountId })) };
    },
  },
  MESSAGES,
);
