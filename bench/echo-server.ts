// A node:http server that only parses the request body and returns JSON of a given size.
import { onBody, serveHttp } from "./serve.ts";

/** The response without its padding. The padding repeats the request. */
const sample = JSON.parse(process.env.ANSWER ?? "{}") as object;
serveHttp((request, response) => {
  onBody(request, (asked) => {
    const { model } = JSON.parse(asked.toString()) as { model: string };
    const body = JSON.stringify({ ...sample, model });
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
  });
});
