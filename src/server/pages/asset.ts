import type { ServePath } from "../http.ts";
import { type Packed, type PageOptions, pack, sendPacked } from "./packed.ts";

type AssetOptions = PageOptions & {
  readonly read: () => Promise<Buffer>;
};

/**
 * Serves content that never changes as a page. It is read on the first request; of large content only the
 * compressed form is kept.
 */
export function asset({ read, ...options }: AssetOptions): ServePath {
  let packed: Promise<Packed> | undefined;
  const load = () => {
    packed ??= read()
      .then(pack)
      .catch((error: unknown) => {
        packed = undefined;
        throw error;
      });
    return packed;
  };
  return async (request, response) => sendPacked(request, response, await load(), options);
}
