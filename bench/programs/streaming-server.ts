// StreamGenerate on a plain connect-node server, without keys, limits, database or log. Its arguments are the
// number of pieces and the milliseconds before each. It pauses as the sandbox does, because pauses that share
// timers would otherwise be counted as an advantage of the server.
import { createServer } from "node:http2";
import type { HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { GenerateService, type StreamGenerateRequest } from "../../gen/vx/v1/generate_pb.js";
import { Pauses } from "../../src/upstreams/sandbox/sandbox.ts";
import { serve } from "./serve.ts";

const [pieces, delayMs] = process.argv.slice(2).map(Number) as [number, number];
const piece = { event: { case: "delta" as const, value: { content: "One piece of a reply" } } };
const done = { event: { case: "done" as const, value: { model: "bench", finishReason: "stop" } } };

async function* streamGenerate(_: StreamGenerateRequest, { signal }: HandlerContext) {
  const pauses = new Pauses(delayMs, signal);
  try {
    for (let sent = 0; sent < pieces; sent++) {
      await pauses.next();
      yield piece;
    }
    yield done;
  } finally {
    pauses.close();
  }
}

serve(createServer(connectNodeAdapter({ routes: (router) => router.service(GenerateService, { streamGenerate }) })));
