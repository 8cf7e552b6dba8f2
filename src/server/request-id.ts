import { KEY_PREFIX } from "../domain/api-key.ts";

const SAFE_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** The caller's request id if it is safe to log unchanged, otherwise a new one. */
export function requestIdFrom(given: string | string[] | undefined, newRequestId: () => string): string {
  if (typeof given === "string" && SAFE_ID.test(given) && !given.includes(KEY_PREFIX)) return given;
  return newRequestId();
}
