import { redactKeys } from "../domain/api-key.ts";

const SAFE_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** The caller's request id if it is safe to log and to store unchanged, otherwise a new one. */
export function requestIdFrom(given: string | string[] | undefined, newRequestId: () => string): string {
  if (typeof given === "string" && SAFE_ID.test(given) && redactKeys(given) === given) return given;
  return newRequestId();
}
