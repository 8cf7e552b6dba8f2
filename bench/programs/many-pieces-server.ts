// A model server that streams replies in pieces, each in a chunk of its own and a few in each turn of the event
// loop. Its argument is the number of pieces. Without "stream" it sends the same text at once.
import type { ServerResponse } from "node:http";
import { DEFAULT_REPLY } from "../../test/support/fake-upstreams/fake-upstream.ts";
import { openaiJsonWire, openaiWire } from "../../test/support/fake-upstreams/wire.ts";
import { onBody, serveHttp } from "./serve.ts";

const PIECES = Number(process.argv[2]);
const PIECES_PER_TURN = 10;
const WORD = " word";
const PIECE = openaiWire.piece(WORD);
const WHOLE = openaiJsonWire.end({ ...DEFAULT_REPLY, pieces: [WORD.repeat(PIECES)] });

serveHttp((request, response) => {
  onBody(request, (asked) => {
    if (!/"stream":\s*true/.test(asked.toString())) {
      response.writeHead(200, { "content-type": openaiJsonWire.contentType, "content-length": Buffer.byteLength(WHOLE) });
      response.end(WHOLE);
      return;
    }
    response.writeHead(200, { "content-type": openaiWire.contentType });
    response.write(openaiWire.begin(DEFAULT_REPLY));
    sendPieces(response, PIECES);
  });
});

function sendPieces(response: ServerResponse, remaining: number): void {
  for (let sent = 0; sent < Math.min(PIECES_PER_TURN, remaining); sent++) response.write(PIECE);
  if (remaining > PIECES_PER_TURN) setImmediate(() => sendPieces(response, remaining - PIECES_PER_TURN));
  else response.end(openaiWire.end(DEFAULT_REPLY));
}
