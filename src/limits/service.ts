import { LimitService } from "../../gen/vx/v1/limit_pb.js";
import { defineService } from "../api/define-service.ts";
import { type LimitOwner, listLimits as listLimitRows } from "./store.ts";
import { viewLimit } from "./views.ts";

export const limitService = defineService(LimitService, {
  /** A member gets the limits of the account, and those that its plan gives to each key, without what the keys used. */
  listLimits: async ({ database }, { user }, { actor, key }) => {
    const owner: LimitOwner = actor.kind === "member" ? { kind: "account", id: key.accountId } : { kind: "key", id: key.keyId };
    return { limits: (await listLimitRows(database, owner, user)).map((row) => viewLimit(row, owner)) };
  },
});
