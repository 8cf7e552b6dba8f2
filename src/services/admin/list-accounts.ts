import type { ListAccountsRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { readPage } from "../../domain/page.ts";
import { listAccounts as listAccountRows } from "../../store/accounts.ts";
import type { Deps } from "../deps.ts";
import { viewAccount } from "../views.ts";

export async function listAccounts(deps: Deps, request: ListAccountsRequest) {
  const { rows, nextPageToken } = await listAccountRows(deps.database, readPage("accounts", request));
  return { accounts: rows.map(viewAccount), nextPageToken };
}
