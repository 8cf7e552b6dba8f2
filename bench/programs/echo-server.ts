// A node:http server that only parses the request body and returns JSON of about the size of a reply.
import { onBody, serveHttp } from "./serve.ts";

const REPLY = "A reply of the sandbox to a small prompt, in the size that it usually has. ".repeat(5);

serveHttp((request, response) => {
  onBody(request, (bytes) => {
    const { model } = JSON.parse(bytes.toString()) as { model: string };
    const body = JSON.stringify({ text: REPLY, model });
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
});
