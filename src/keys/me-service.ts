import { MeService } from "../../gen/vx/v1/me_pb.js";
import { defineService } from "../api/define-service.ts";
import { maskKey } from "../domain/credentials.ts";
import { formatMicros } from "../domain/money.ts";

export const meService = defineService(MeService, {
  /** Needs no query: the statement that admitted the call returned every field. */
  getMe: async (_deps, _request, { key }) => ({
    key: maskKey(key.visibleStart, key.visibleEnd),
    keyName: key.keyName,
    plan: key.plan,
    rateLimitRpm: key.rateLimitRpm,
    balance: formatMicros(key.balanceMicros),
    balanceMicros: key.balanceMicros,
  }),
});
