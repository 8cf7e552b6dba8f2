// An endpoint of webhooks that accepts everything.
import { onBody, serveHttp } from "./serve.ts";

serveHttp((request, response) => {
  onBody(request, () => response.writeHead(204).end());
});
