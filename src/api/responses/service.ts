import {
  type CreateResponseRequest,
  CreateResponseRequestSchema,
  ResponsesService,
} from "../../../gen/vx/openai/v1/responses_pb.js";
import { type ApiCall, defineService, type ServiceDeps } from "../define-service.ts";
import { ResponseEvents, type StreamedEvent } from "./events.ts";
import { itemsOf } from "./items.ts";
import { finishedResponse, isIncomplete, type ResponseInit, settingsOf } from "./reply.ts";
import { generationRequestOfResponses, includesEncryptedReasoning } from "./request.ts";

async function createResponse(
  { meter }: ServiceDeps,
  request: CreateResponseRequest,
  call: ApiCall,
): Promise<ResponseInit> {
  const generationRequest = generationRequestOfResponses(request);
  const isEncryptedIncluded = includesEncryptedReasoning(request);
  const settings = settingsOf(request, generationRequest.options);
  const reply = await meter.complete(call.caller(CreateResponseRequestSchema, request), generationRequest);
  const options = { isIncomplete: isIncomplete(reply), isEncryptedIncluded };
  return finishedResponse(reply, itemsOf(reply.id, reply.output, options), settings);
}

/** An error before the first event is an ordinary response; after it, the response fails. */
async function* streamResponse(
  { meter }: ServiceDeps,
  request: CreateResponseRequest,
  call: ApiCall,
): AsyncGenerator<StreamedEvent> {
  const generationRequest = generationRequestOfResponses(request);
  const isEncryptedIncluded = includesEncryptedReasoning(request);
  const settings = settingsOf(request, generationRequest.options);
  let events: ResponseEvents | undefined;
  try {
    for await (const piece of meter.stream(
      call.caller(CreateResponseRequestSchema, request),
      generationRequest,
    )) {
      if (!events) {
        const { id: generationId, model } = piece.kind === "delta" ? piece : piece.reply;
        events = new ResponseEvents({ generationId, model, settings, isEncryptedIncluded });
        yield* events.start();
      }
      yield* piece.kind === "delta" ? events.append(piece.delta) : events.end(piece.reply);
    }
  } catch (error) {
    if (events) yield events.failed(error);
    throw error;
  }
}

/** Unknown fields are ignored: OpenAI's clients send fields that this server does not know. */
export const responsesService = defineService(ResponsesService, { createResponse, streamResponse }, "ignore");
