// StreamGenerate on a plain connect-node server, without keys, limits, database or log. Its arguments are the
// number of pieces and the milliseconds before each.
import { createServer } from "node:http2";
import { setTimeout } from "node:timers/promises";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { serve } from "./serve.ts";

const [pieces, delayMs] = process.argv.slice(2).map(Number) as [number, number];
const piece = { event: { case: "delta" as const, value: { content: "One piece of a reply" } } };
const done = { event: { case: "done" as const, value: { model: "bench", finishReason: "stop" } } };

async function* streamGenerate() {
  for (let sent = 0; sent < pieces; sent++) {
    await setTimeout(delayMs);
    yield piece;
  }
  yield done;
}

serve(
  createServer(
    connectNodeAdapter({ routes: (router) => router.service(GenerateService, { streamGenerate }) }),
  ),
);
