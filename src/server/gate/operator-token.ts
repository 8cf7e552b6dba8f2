import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingCall } from "../incoming-call.ts";
import { bearerCredential } from "./bearer.ts";

/** Whether a request on the operator listener carries the operator token. */
export type OperatorCheck = (request: Pick<IncomingCall, "target" | "headers">) => boolean;

export function operatorCheck(token: string): OperatorCheck {
  const expected = hash("sha256", token, "buffer");
  return (request) => {
    try {
      return timingSafeEqual(hash("sha256", bearerCredential(request), "buffer"), expected);
    } catch {
      return false;
    }
  };
}
