import type { ServePath } from "../http.ts";
import { type Packed, type PageOptions, sendPacked } from "./packed.ts";

type AssetOptions = PageOptions & {
  readonly load: () => Promise<Packed>;
};

/**
 * Serves content that never changes as a page. It is read on the first request; of large content only the
 * compressed form is kept.
 */
export function asset({ load, ...options }: AssetOptions): ServePath {
  let packed: Promise<Packed> | undefined;
  const loadOnce = () => {
    packed ??= load().catch((error: unknown) => {
      packed = undefined;
      throw error;
    });
    return packed;
  };
  return async (request, response) => sendPacked(request, response, await loadOnce(), options);
}
