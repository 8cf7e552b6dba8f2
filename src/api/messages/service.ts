import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type CountTokensRequest,
  type CountTokensResponseSchema,
  type CreateMessageRequest,
  CreateMessageRequestSchema,
  type CreateMessageResponseSchema,
  MessagesService,
  type StreamMessageResponseSchema,
} from "../../../gen/vx/anthropic/v1/messages_pb.js";
import type { Meter } from "../../billing/meter.ts";
import { type ApiCall, defineService } from "../define-service.ts";
import { messageEvents, messageOf } from "./reply.ts";
import { generationRequestOfCount, generationRequestOfMessage } from "./request.ts";

export async function createMessage(
  meter: Meter,
  request: CreateMessageRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof CreateMessageResponseSchema>> {
  return messageOf(
    await meter.complete(
      call.caller(CreateMessageRequestSchema, request),
      await generationRequestOfMessage(request),
    ),
  );
}

export async function* streamMessage(
  meter: Meter,
  request: CreateMessageRequest,
  call: ApiCall,
): AsyncGenerator<MessageInitShape<typeof StreamMessageResponseSchema>> {
  yield* messageEvents(
    meter.stream(call.caller(CreateMessageRequestSchema, request), await generationRequestOfMessage(request)),
  );
}

export async function countTokens(
  meter: Meter,
  request: CountTokensRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof CountTokensResponseSchema>> {
  const { accountId } = call.key;
  const inputTokens = await meter.countInput(call.key, await generationRequestOfCount(request), {
    signal: call.signal,
    accountId,
  });
  return { inputTokens: BigInt(inputTokens) };
}

/** Unknown fields are ignored: Anthropic's clients send fields that this server does not know. */
export const messagesService = defineService(
  MessagesService,
  ({ meter }) => ({
    createMessage: (request, call) => createMessage(meter, request, call),
    streamMessage: (request, call) => streamMessage(meter, request, call),
    countTokens: (request, call) => countTokens(meter, request, call),
  }),
  "ignore",
);
