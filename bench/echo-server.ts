// A node:http server that parses the body it gets and answers JSON of a given size; nothing else.
import { onBody, serveHttp } from "./serve.ts";

/** The answer without what fills it up to the size: its text repeats what was asked. */
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
