import { isClosed } from "./http.ts";

type Writable = {
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
};

/** Waits until a response can be written again or is closed. */
export function untilWritable(response: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (isClosed(response)) {
      resolve();
      return;
    }
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
  });
}
