import { isClosed } from "./http.ts";

type Writable = {
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
};

/** Waits until a response can be written again, is closed, or the signal aborts. */
export function untilWritable(response: Writable, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (isClosed(response) || signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
    signal?.addEventListener("abort", done);
  });
}
