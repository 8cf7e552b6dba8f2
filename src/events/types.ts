import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { event_types as eventTypes } from "../../gen/vx/options/v1/options_pb.js";
import { file_vx_v1_event } from "../../gen/vx/v1/event_pb.js";
import { DomainError } from "../domain/errors.ts";

export const EVENT_TYPES: ReadonlyMap<string, DescMessage> = new Map(
  file_vx_v1_event.messages.flatMap((message) => getOption(message, eventTypes).map((type) => [type, message] as const)),
);

export function checkEventType(field: string, type: string): void {
  if (!EVENT_TYPES.has(type)) throw DomainError.ofField(field, `must be among ${[...EVENT_TYPES.keys()].join(", ")}`);
}
