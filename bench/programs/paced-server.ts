// A model server that sends one piece to every open stream per tick, in a chunk of its own. Its argument is the
// number of pieces.
import type { ServerResponse } from "node:http";
import { DEFAULT_REPLY } from "../../test/support/fake-upstreams/fake-upstream.ts";
import { openaiWire } from "../../test/support/fake-upstreams/wire.ts";
import { onBody, serveHttp } from "./serve.ts";

const PIECES = Number(process.argv[2]);
const TICK_MS = 20;

const remaining = new Map<ServerResponse, number>();
serveHttp((request, response) => {
  onBody(request, () => {
    response.writeHead(200, { "content-type": openaiWire.contentType });
    remaining.set(response, PIECES);
  });
});
setInterval(() => {
  for (const [response, pieces] of remaining) {
    if (pieces > 0) {
      remaining.set(response, pieces - 1);
      response.write(openaiWire.piece(" word"));
    } else {
      remaining.delete(response);
      response.end(openaiWire.end(DEFAULT_REPLY));
    }
  }
}, TICK_MS);
