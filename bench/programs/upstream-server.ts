// A model server that only returns the bytes of a short reply, streamed if requested.
import { DEFAULT_REPLY } from "../../test/support/fake-upstreams/fake-upstream.ts";
import { openaiJsonWire, openaiWire } from "../../test/support/fake-upstreams/wire.ts";
import { onBody, serveHttp } from "./serve.ts";

const reply = { ...DEFAULT_REPLY, pieces: ["Hello, ", "world", "."] };
const streamed = {
  type: openaiWire.contentType,
  body: openaiWire.begin(reply) + reply.pieces.map(openaiWire.piece).join("") + openaiWire.end(reply),
};
const whole = { type: openaiJsonWire.contentType, body: openaiJsonWire.end(reply) };
serveHttp((request, response) => {
  onBody(request, (asked) => {
    const { type, body } = asked.includes('"stream":true') ? streamed : whole;
    response.writeHead(200, { "content-type": type, "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
});
