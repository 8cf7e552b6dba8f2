import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { rolldown } from "rolldown";

/** A site of another origin than the server. Its only page has the functions of calls.ts. */
export type Origin = { readonly url: string; stop(): Promise<void> };

export async function bundlePage(): Promise<string> {
  const bundle = await rolldown({
    input: new URL("calls.ts", import.meta.url).pathname,
    platform: "browser",
    logLevel: "silent",
  });
  // Two clients may have an error class of the same name.
  const { output } = await bundle.generate({ format: "iife", keepNames: true });
  await bundle.close();
  return output[0].code;
}

export async function startOrigin(script: string): Promise<Origin> {
  const server = createServer(({ url }, response) => {
    const isScript = url === "/calls.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html; charset=utf-8");
    response.end(isScript ? script : '<!doctype html><link rel="icon" href="data:,"><script src="/calls.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
