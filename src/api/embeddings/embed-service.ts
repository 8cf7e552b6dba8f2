import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type EmbedRequest,
  EmbedRequestSchema,
  type EmbedResponseSchema,
  EmbedService,
} from "../../../gen/vx/v1/embed_pb.js";
import type { Meter } from "../../billing/meter.ts";
import type { ApiCall } from "../api-call.ts";
import { defineService } from "../define-service.ts";
import { summaryOf } from "../generate/generate-reply.ts";
import { embeddingRequestOf } from "./embedding-request.ts";

export async function embed(
  meter: Meter,
  request: EmbedRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof EmbedResponseSchema>> {
  const { model, input: texts, dimensions } = request;
  const asked = embeddingRequestOf({ format: "native", model, texts, dimensions, user: "" });
  const reply = await meter.complete(call.caller(EmbedRequestSchema, request), asked);
  const { id, usage, balanceMicros } = summaryOf(reply);
  const embeddings = (reply.vectors ?? []).map((vector, index) => ({ index, values: [...vector] }));
  return { id, model: reply.model, embeddings, usage, balanceMicros };
}

export const embedService = defineService(EmbedService, ({ meter }) => ({
  embed: (request, call) => embed(meter, request, call),
}));
