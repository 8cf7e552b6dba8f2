import type { AccountUsageRow } from "../../gen/vx/admin/v1/admin_pb.js";
import type { UsageSource } from "../shared/usage.ts";
import type { AdminClient } from "./operator-session.ts";

/** The usage of one account, or of all accounts together if the id is empty. */
export function usageOf(api: AdminClient, accountId: string): UsageSource {
  return {
    list: async (request, options) => {
      // Keys of several accounts can have the same name, so the name of the account follows.
      const isOfAccounts = accountId === "" && request.groupBy.includes("key");
      const groupBy = isOfAccounts ? [...request.groupBy, "account"] : request.groupBy;
      const { rows, nextPageToken } = await api.getUsage({ ...request, groupBy, accountId }, options);
      const nameOf = ({ keyName, accountName }: AccountUsageRow) => (isOfAccounts ? `${keyName} · ${accountName}` : keyName);
      return {
        rows: rows.flatMap((row) => (row.usage ? [{ ...row, usage: row.usage, keyName: nameOf(row) }] : [])),
        nextPageToken,
      };
    },
  };
}
