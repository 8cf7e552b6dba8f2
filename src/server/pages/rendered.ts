import type { TLSSocket } from "node:tls";
import type { Model } from "../../domain/model.ts";
import { type HttpRequest, rawSocketOf, type ServePath } from "../http/message.ts";
import { type Packed, type PageOptions, pack, sendPacked, uncompressed } from "./packed.ts";

/** The content for clients that reach the server at a URL, which they choose. */
export type Render = (url: string) => Packed | Promise<Packed>;

type RenderedOptions = PageOptions & {
  readonly models: () => readonly Model[];
  /** Called once for each list of models. */
  readonly prepare: (models: readonly Model[]) => Promise<Render>;
};

/** A page that shows the address of the server and its models. It changes when the models are reloaded. */
export function rendered({ models, prepare, ...options }: RenderedOptions): ServePath {
  const pageOptions = { ...options, vary: "accept-encoding, x-forwarded-proto" };
  let shown: readonly Model[] | undefined;
  let prepared: Promise<Render>;

  const current = (): Promise<Render> => {
    const list = models();
    if (list !== shown) {
      shown = list;
      prepared = prepare(list);
      prepared.catch(() => {
        shown = undefined;
      });
    }
    return prepared;
  };

  return async (request, response) => {
    const render = await current();
    sendPacked(request, response, await render(serverUrl(request)), pageOptions);
  };
}

/** Cached variants and concurrent compressions are limited, because the client chooses the host. */
const MAX_KEPT = 16;
const MAX_PACKING = 4;

/** Packs a page for each URL. Only for pages of less than 100 kB: each client can choose another URL. */
export function packEach(textFor: (url: string) => string): Render {
  const byUrl = new Map<string, Promise<Packed>>();
  let packing = 0;

  const packOnce = async (content: Buffer) => {
    packing++;
    try {
      return await pack(content);
    } finally {
      packing--;
    }
  };

  return async (url) => {
    const known = byUrl.get(url);
    if (known !== undefined) return await known;
    const content = Buffer.from(textFor(url));
    if (packing >= MAX_PACKING) return uncompressed(content);
    const packed = packOnce(content);
    const [oldest] = byUrl.keys();
    if (byUrl.size >= MAX_KEPT && oldest !== undefined) byUrl.delete(oldest);
    byUrl.set(url, packed);
    packed.catch(() => byUrl.delete(url));
    return await packed;
  };
}

/** A host name, an IPv4 address or a bracketed IPv6 address, with or without a port; nothing that a shell expands. */
const HOST = /^([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:\d{1,5})?$/i;

/** The address at which the client reached the server. Safe in HTML, JSON and shell commands. */
function serverUrl(request: HttpRequest): string {
  const host = request.headers[":authority"] ?? request.headers.host;
  const scheme = isSecure(request) ? "https" : "http";
  return `${scheme}://${typeof host === "string" && HOST.test(host) ? host : localAddress(request)}`;
}

/** A proxy that terminates TLS sets the header. It changes only the page of the client that sends it. */
function isSecure(request: HttpRequest): boolean {
  const socket = rawSocketOf(request) as Partial<TLSSocket> | undefined;
  return socket?.encrypted === true || request.headers["x-forwarded-proto"] === "https";
}

function localAddress(request: HttpRequest): string {
  const { localAddress = "127.0.0.1", localPort = 80 } = rawSocketOf(request) ?? {};
  return localAddress.includes(":") ? `[${localAddress}]:${localPort}` : `${localAddress}:${localPort}`;
}
