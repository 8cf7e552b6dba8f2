import type { GetStatementRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { StatementService } from "../../gen/vx/v1/statement_pb.js";
import { accountIdToRead } from "../accounts/named-account.ts";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { viewStatement } from "./statements.ts";

export const statementService = defineService(StatementService, {
  getStatement: async ({ database }, { month }, { key: { accountId } }) => await viewStatement(database, accountId, month),
});

export async function getAnyStatement(deps: Pick<Deps, "database">, { accountId, month }: GetStatementRequest, call: ApiCall) {
  const id = await accountIdToRead(deps, call, accountId);
  return { statement: await viewStatement(deps.database, id, month) };
}
