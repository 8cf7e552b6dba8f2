import type {
  CreateOperatorRequest,
  ListOperatorEventsRequest,
  ListOperatorsRequest,
  RevokeOperatorRequest,
  SetOperatorRoleRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { namesOf } from "../accounts/store.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { fingerprintOf } from "../domain/credentials.ts";
import type { Role } from "../domain/operator.ts";
import { readPage } from "../domain/page.ts";
import { dateOf } from "../rules/request-values.ts";
import { makeLoggedChange } from "./operator-action.ts";
import { listOperatorEvents as listEventRows } from "./operator-log.ts";
import {
  createOperator as createOperatorRow,
  listOperators as listOperatorRows,
  revokeOperator as revokeOperatorRow,
  setOperatorRole as setOperatorRoleOfRow,
} from "./store.ts";
import { viewOperator, viewOperatorEvent } from "./views.ts";

/** Stores the fingerprint of a new token and returns the token, which cannot be read again later. */
export async function createOperator(deps: Deps, request: CreateOperatorRequest, call: ApiCall) {
  const { name, role, reason, email } = request;
  const secret = deps.generateOperatorToken();
  // The rules of the request allow no other role.
  const operator = { id: deps.ids.operator(), name, role: role as Role, email };
  const row = await makeLoggedChange(deps, call, { reason, details: { name, role } }, (action) =>
    createOperatorRow(deps.database, action, operator, fingerprintOf(secret)),
  );
  return { operator: viewOperator(row), secret };
}

export async function listOperators(deps: Deps, request: ListOperatorsRequest) {
  const { rows, nextPageToken } = await listOperatorRows(deps.database, readPage("operators", request));
  return { operators: rows.map(viewOperator), nextPageToken };
}

export async function revokeOperator(deps: Deps, request: RevokeOperatorRequest, call: ApiCall) {
  const { operatorId, reason } = request;
  const row = await makeLoggedChange(deps, call, { target: operatorId, reason }, (action) =>
    revokeOperatorRow(deps.database, action, operatorId),
  );
  return { operator: viewOperator(row) };
}

export async function setOperatorRole(deps: Deps, request: SetOperatorRoleRequest, call: ApiCall) {
  const { operatorId, role, reason } = request;
  const change = { target: operatorId, reason, details: { role } };
  const row = await makeLoggedChange(deps, call, change, (action) =>
    // The rules of the request allow no other role.
    setOperatorRoleOfRow(deps.database, action, operatorId, role as Role),
  );
  return { operator: viewOperator(row) };
}

export async function listOperatorEvents({ database }: Deps, request: ListOperatorEventsRequest) {
  const { actorId, method, target, accountId } = request;
  const from = dateOf("from", request.from);
  const to = dateOf("to", request.to);
  const filter = { actorId, method, target, accountId, from, to };
  const { rows, nextPageToken } = await listEventRows(database, filter, readPage("operator_events", request));
  const names = await namesOf(
    database,
    rows.map((row) => row.account_id),
    rows.map((row) => row.target).filter((id) => /^(key|op)_/.test(id)),
  );
  return { events: rows.map((row) => viewOperatorEvent(row, names)), nextPageToken };
}
