import type { ListKeysRequest } from "../../gen/vx/v1/key_pb.js";
import { readPage } from "../domain/page.ts";
import { type Call, callingKey } from "../gate/call.ts";
import { listKeys as listKeyRows } from "../store/keys.ts";
import type { Deps } from "./deps.ts";
import { viewKey } from "./views.ts";

export async function listKeys(deps: Deps, request: ListKeysRequest, call: Call) {
  const { rows, nextPageToken } = await listKeyRows(
    deps.database,
    callingKey(call).accountId,
    readPage("keys", request),
  );
  return { apiKeys: rows.map(viewKey), nextPageToken };
}
