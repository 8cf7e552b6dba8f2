import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ApiKeySchema } from "../../gen/vx/v1/key_pb.js";
import { maskKey } from "../domain/credentials.ts";
import { fromScopeBits } from "../domain/scope.ts";
import { limitsOfKey } from "../limits/store.ts";
import { viewLimit } from "../limits/views.ts";
import type { KeyRow } from "./store.ts";

export function viewKey(row: KeyRow): MessageInitShape<typeof ApiKeySchema> {
  return {
    id: row.id,
    name: row.name,
    maskedKey: maskKey(row.visible_start, row.visible_end),
    plan: row.plan,
    scopes: fromScopeBits(row.scopes),
    state: row.state,
    rateLimitRpm: row.rpm,
    createdAt: timestampFromDate(row.created_at),
    ...(row.revoked_at ? { revokedAt: timestampFromDate(row.revoked_at) } : {}),
    ...(row.expires_at ? { expiresAt: timestampFromDate(row.expires_at) } : {}),
    ...(row.last_used_at ? { lastUsedAt: timestampFromDate(row.last_used_at) } : {}),
    models: row.models?.split(",") ?? [],
    allowedCidrs: row.allowed_cidrs?.split(",") ?? [],
    limits: limitsOfKey(row.limits).map((limit) => viewLimit(limit, { kind: "key", id: row.id })),
    ...(row.previous_expires_at ? { previousExpiresAt: timestampFromDate(row.previous_expires_at) } : {}),
  };
}
