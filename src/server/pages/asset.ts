import { readFile } from "node:fs/promises";
import type { ServePath } from "../http.ts";
import { type Packed, type PageOptions, pack, sendPacked } from "./packed.ts";

type AssetOptions = PageOptions & {
  readonly file: URL;
};

/**
 * Serves a file as a page. It is read on the first request; for a large file only the compressed form is
 * kept.
 */
export function asset(options: AssetOptions): ServePath {
  let packed: Promise<Packed> | undefined;
  const load = () => {
    packed ??= readFile(options.file)
      .then(pack)
      .catch((error: unknown) => {
        packed = undefined;
        throw error;
      });
    return packed;
  };
  return async (request, response) => sendPacked(request, response, await load(), options);
}
