// A collector that reads what is exported and keeps nothing.
import { onBody, serveHttp } from "./serve.ts";

serveHttp((request, response) => {
  onBody(request, () => response.writeHead(200, { "content-length": 0 }).end());
});
