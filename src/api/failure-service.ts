import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ListFailuresRequest as ListAnyFailuresRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { FailureService, type ListFailuresRequest } from "../../gen/vx/v1/failure_pb.js";
import { readPage } from "../domain/page.ts";
import { accountIdOf } from "../store/accounts.ts";
import { type FailureRow, listFailures as listRows } from "../store/failures.ts";
import { type Deps, defineService } from "./define-service.ts";
import { dateOf } from "./request-values.ts";

export const failureService = defineService(FailureService, {
  listFailures: async (deps, request, { key }) => {
    const { rows, nextPageToken } = await list(deps, key.accountId, request);
    // The name of an upstream can contain an internal address.
    return { failures: rows.map((row) => viewFailure({ ...row, upstream: "" })), nextPageToken };
  },
});

/** The same of any account, for operators. */
export async function listFailuresOfAccount(deps: Deps, request: ListAnyFailuresRequest) {
  const accountId = await accountIdOf(deps.database, request.accountId);
  const { rows, nextPageToken } = await list(deps, accountId, request);
  return { failures: rows.map(viewFailure), nextPageToken };
}

async function list(
  { database }: Deps,
  accountId: string,
  request: ListFailuresRequest | ListAnyFailuresRequest,
) {
  const { keyId, model, code } = request;
  const filter = { keyId, model, code, from: dateOf("from", request.from), to: dateOf("to", request.to) };
  const page = readPage("failures", request);
  return await listRows(database, accountId, filter, page);
}

function viewFailure(row: FailureRow) {
  return {
    time: timestampFromDate(row.created_at),
    keyId: row.key_id,
    method: row.method,
    model: row.model,
    upstream: row.upstream,
    status: row.status,
    code: row.code,
    message: row.message,
    latencyMs: row.latency_ms,
    requestId: row.request_id,
    omitted: row.omitted,
  };
}
