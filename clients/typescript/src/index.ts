export { WebhookVerificationError } from "standardwebhooks";
export {
  Client,
  type ClientOptions,
  type EmbedInput,
  type GenerateInput,
  type StreamInput,
} from "./client.ts";
export type { ErrorDetail } from "./error-details.ts";
export * from "./errors.ts";
export {
  type TypedEvent,
  typedEvent,
  verifyWebhook,
  type WebhookHeaders,
} from "./event-calls.ts";
export type { EventData } from "./gen/event-data.ts";
export * from "./gen/reasons.ts";
export { VERSION } from "./gen/version.ts";
export * from "./gen/vx/v1/embed_pb.ts";
export * from "./gen/vx/v1/event_pb.ts";
export * from "./gen/vx/v1/generate_pb.ts";
export * from "./gen/vx/v1/key_pb.ts";
export * from "./gen/vx/v1/ledger_pb.ts";
export * from "./gen/vx/v1/limit_pb.ts";
export * from "./gen/vx/v1/me_pb.ts";
export * from "./gen/vx/v1/model_pb.ts";
export * from "./gen/vx/v1/prices_pb.ts";
export * from "./gen/vx/v1/usage_pb.ts";
export * from "./gen/vx/v1/webhook_pb.ts";
export { GenerationStream } from "./generation-stream.ts";
export { type Page, Pages } from "./pages.ts";
export type { CallOptions } from "./retries.ts";
