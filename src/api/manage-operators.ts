import type {
  CreateOperatorRequest,
  ListOperatorsRequest,
  RevokeOperatorRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { fingerprintOf } from "../domain/api-key.ts";
import type { Role } from "../domain/operator.ts";
import { readPage } from "../domain/page.ts";
import {
  createOperator as createOperatorRow,
  listOperators as listOperatorRows,
  revokeOperator as revokeOperatorRow,
} from "../store/operators.ts";
import type { ApiCall } from "./api-call.ts";
import type { Deps } from "./deps.ts";
import { makeLoggedChange } from "./operator-action.ts";
import { viewOperator } from "./views.ts";

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
