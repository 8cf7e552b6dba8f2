import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  CountFailuresRequest as CountAnyFailuresRequest,
  ListFailuresRequest as ListAnyFailuresRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import {
  type CountFailuresRequest,
  FailureSchema,
  FailureService,
  type ListFailuresRequest,
} from "../../gen/vx/v1/failure_pb.js";
import { accountIdToRead } from "../accounts/named-account.ts";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import { laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import { dateOf } from "../rules/request-values.ts";
import { usageQueryOf } from "../usage/request.ts";
import { countFailures, type FailureRow, listFailures as listRows } from "./store.ts";

export const failureService = defineService(FailureService, {
  listFailures: async (deps, request, { key }) => {
    const { rows, nextPageToken } = await list(deps, key.accountId, request);
    // The name of an upstream can contain an internal address.
    return { failures: rows.map((row) => viewFailure({ ...row, upstream: "" })), nextPageToken };
  },
  countFailures: async (deps, request, { key }) => await count(deps, key.accountId, request),
});

export async function listFailuresOfAccount(deps: Deps, request: ListAnyFailuresRequest, call: ApiCall) {
  const accountId = await accountIdToRead(deps, call, request.accountId);
  const { rows, nextPageToken } = await list(deps, accountId, request);
  return { failures: rows.map(viewFailure), nextPageToken };
}

export async function countFailuresOfAccount(deps: Deps, request: CountAnyFailuresRequest, call: ApiCall) {
  return await count(deps, await accountIdToRead(deps, call, request.accountId), request);
}

async function list({ database }: Deps, accountId: string, request: ListFailuresRequest | ListAnyFailuresRequest) {
  const { keyId, model, code } = request;
  const filter = { keyId, model, code, from: dateOf("from", request.from), to: dateOf("to", request.to) };
  const page = readPage("failures", request);
  return await listRows(database, accountId, filter, page);
}

async function count({ database }: Deps, accountId: string, request: CountFailuresRequest | CountAnyFailuresRequest) {
  const groupBy = request.groupBy === "" ? [] : [request.groupBy];
  const { starts, end } = await usageQueryOf(database.at(laneOfId(accountId)), { ...request, groupBy }, []);
  const timeOf = (quarter: number) => new Date(quarter * QUARTER_MS);
  const periods = { starts: starts.map(timeOf), end: timeOf(end) };
  const { counts, countedFrom } = await countFailures(database, accountId, request, periods);
  return {
    counts: counts.map(({ start, code, calls }) => ({ start: timestampFromDate(start), code, calls })),
    countedFrom: timestampFromDate(countedFrom),
  };
}

function viewFailure(row: FailureRow) {
  return viewOf(FailureSchema, row, { time: timestampFromDate(row.created_at) });
}
