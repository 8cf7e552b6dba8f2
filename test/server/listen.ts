import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { defaultLimits, type Limits } from "../../src/server/http/connection-limits.ts";
import { Listener } from "../../src/server/http/listener.ts";

type Options = Partial<Omit<ConstructorParameters<typeof Listener>[0], "handler" | "limits">>;
type Handler = ConstructorParameters<typeof Listener>[0]["handler"];

/** A listener on a free port, without the layers above HTTP. */
export async function listen(handler: Handler, limits: Partial<Limits> = {}, options: Options = {}) {
  const listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    limits: { ...defaultLimits, ...limits },
    handler,
    refusals: badRequestResponses(() => "req_test"),
    ...options,
  });
  const { port } = await listener.open();
  return { listener, port, url: `http://127.0.0.1:${port}`, stop: () => listener.close(0) };
}
