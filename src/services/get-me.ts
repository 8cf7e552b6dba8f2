import type { GetMeRequest } from "../../gen/vx/v1/me_pb.js";
import { maskKey } from "../domain/api-key.ts";
import { formatMicros } from "../domain/money.ts";
import { type Call, callingKey } from "../gate/call.ts";

/** Admission has read all of it already, in the statement that let the call in (spec 4.1). */
export async function getMe(_request: GetMeRequest, call: Call) {
  const key = callingKey(call);
  return {
    key: maskKey(key.visibleStart, key.visibleEnd),
    keyName: key.keyName,
    plan: key.plan,
    rateLimitRpm: key.rateLimitRpm,
    balance: formatMicros(key.balanceMicros),
    balanceMicros: key.balanceMicros,
  };
}
