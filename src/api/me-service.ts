import { type GetMeRequest, MeService } from "../../gen/vx/v1/me_pb.js";
import { maskKey } from "../domain/credentials.ts";
import { formatMicros } from "../domain/money.ts";
import { type ApiCall, defineService } from "./define-service.ts";

/** Needs no query: the statement that admitted the call returned every field. */
export async function getMe(_request: GetMeRequest, call: ApiCall) {
  const key = call.key;
  return {
    key: maskKey(key.visibleStart, key.visibleEnd),
    keyName: key.keyName,
    plan: key.plan,
    rateLimitRpm: key.rateLimitRpm,
    balance: formatMicros(key.balanceMicros),
    balanceMicros: key.balanceMicros,
  };
}

export const meService = defineService(MeService, () => ({ getMe }));
