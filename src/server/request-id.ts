import { KEY_PREFIX } from "../domain/api-key.ts";

const SANE = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** The caller's request id when it can be written to a log as it is, a new one otherwise. */
export function requestIdFrom(given: string | string[] | undefined, draw: () => string): string {
  if (typeof given === "string" && SANE.test(given) && !given.includes(KEY_PREFIX)) return given;
  return draw();
}
