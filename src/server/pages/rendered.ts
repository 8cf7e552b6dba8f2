import type { Model } from "../../domain/model.ts";
import type { ServePath } from "../http.ts";
import { type Packed, type PageOptions, pack, sendPacked, uncompressed } from "./packed.ts";
import { serverUrl } from "./server-url.ts";

/** Renders the content for clients that reach the server at a URL. */
export type Render = (url: string) => string;

type RenderedOptions = PageOptions & {
  readonly models: () => readonly Model[];
  /** Called once for each list of models. */
  readonly prepare: (models: readonly Model[]) => Promise<Render>;
};

type Variants = { readonly render: Promise<Render>; readonly byUrl: Map<string, Promise<Packed>> };

/** The client chooses the host, so cached variants and concurrent compressions are limited. */
const MAX_KEPT = 16;
const MAX_PACKING = 4;

/** A page that shows the address of the server and its models. It changes when the models are reloaded. */
export function rendered({ models, prepare, ...options }: RenderedOptions): ServePath {
  const pageOptions = { ...options, vary: "accept-encoding, x-forwarded-proto" };
  let shown: readonly Model[] | undefined;
  let variants: Variants;
  let packing = 0;

  const packOnce = async (content: Buffer) => {
    packing++;
    try {
      return await pack(content);
    } finally {
      packing--;
    }
  };

  const variant = async (url: string): Promise<Packed> => {
    const current = models();
    if (current !== shown) {
      shown = current;
      variants = { render: prepare(current), byUrl: new Map() };
      variants.render.catch(() => {
        shown = undefined;
      });
    }
    const { render, byUrl } = variants;
    const known = byUrl.get(url);
    if (known) return await known;
    const content = Buffer.from((await render)(url));
    if (packing >= MAX_PACKING) return uncompressed(content);
    const packed = packOnce(content);
    const [oldest] = byUrl.keys();
    if (byUrl.size >= MAX_KEPT && oldest !== undefined) byUrl.delete(oldest);
    byUrl.set(url, packed);
    packed.catch(() => byUrl.delete(url));
    return await packed;
  };

  return async (request, response) =>
    sendPacked(request, response, await variant(serverUrl(request)), pageOptions);
}
