import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type GenerateResponseSchema,
  GenerateService,
  type StreamGenerateRequest,
  StreamGenerateRequestSchema,
  type StreamGenerateResponseSchema,
} from "../../../gen/vx/v1/generate_pb.js";
import type { Piece } from "../../billing/generation-request.ts";
import type { Meter } from "../../billing/meter.ts";
import { MappedStream } from "../../domain/mapped-stream.ts";
import type { ApiCall } from "../api-call.ts";
import { defineService } from "../define-service.ts";
import { deltaOf, messageOf, summaryOf } from "./generate-reply.ts";
import { generationRequestOf } from "./generate-request.ts";
import { quoteGenerate } from "./quote-generate.ts";

export async function generate(
  meter: Meter,
  request: GenerateRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof GenerateResponseSchema>> {
  const caller = call.caller(GenerateRequestSchema, request);
  const converted = generationRequestOf(request);
  const reply = await meter.complete(caller, converted instanceof Promise ? await converted : converted);
  return { ...summaryOf(reply), message: messageOf(reply.output) };
}

type StreamMessage = MessageInitShape<typeof StreamGenerateResponseSchema>;

export function streamGenerate(
  meter: Meter,
  request: StreamGenerateRequest,
  call: ApiCall,
): AsyncIterable<StreamMessage> {
  const open = async () =>
    meter.stream(call.caller(StreamGenerateRequestSchema, request), await generationRequestOf(request));
  return new MappedStream(open, messageOfPiece);
}

function messageOfPiece(piece: Piece): StreamMessage {
  return piece.kind === "reply"
    ? { event: { case: "done", value: summaryOf(piece.reply) } }
    : { event: { case: "delta", value: deltaOf(piece.delta) } };
}

export const generateService = defineService(GenerateService, ({ meter, deps }) => ({
  generate: (request, call) => generate(meter, request, call),
  streamGenerate: (request, call) => streamGenerate(meter, request, call),
  quoteGenerate: (request, call) => quoteGenerate(meter, deps, request, call),
}));
