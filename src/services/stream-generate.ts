import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StreamGenerateRequest, StreamGenerateResponseSchema } from "../../gen/vx/v1/generate_pb.js";
import type { Call } from "../gate/call.ts";
import type { Meter } from "../metering/meter.ts";
import { askOf, summaryOf } from "./generate.ts";

export async function* streamGenerate(
  meter: Meter,
  request: StreamGenerateRequest,
  call: Call,
): AsyncGenerator<MessageInitShape<typeof StreamGenerateResponseSchema>> {
  for await (const piece of meter.stream(call, askOf(request))) {
    yield piece.kind === "delta"
      ? { event: { case: "delta", value: { content: piece.content } } }
      : { event: { case: "done", value: summaryOf(piece.reply) } };
  }
}
