import type { ListKeysRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { readPage } from "../../domain/page.ts";
import { getAccount } from "../../store/accounts.ts";
import { listKeys as listKeyRows } from "../../store/keys.ts";
import type { Deps } from "../deps.ts";
import { viewKey } from "../views.ts";

/** An account that does not exist is not found, rather than without keys. */
export async function listKeys(deps: Deps, request: ListKeysRequest) {
  const account = await getAccount(deps.database, request.accountId);
  const { rows, nextPageToken } = await listKeyRows(deps.database, account.id, readPage("keys", request));
  return { apiKeys: rows.map(viewKey), nextPageToken };
}
