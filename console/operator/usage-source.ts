import type { UsageSource } from "../shared/usage.ts";
import type { AdminClient } from "./operator-session.ts";

/** More names than that are shown as ids. */
const MAX_NAMES = 1_000;

/** The usage of one account, or of all accounts together if the id is empty. */
export function usageOf(api: AdminClient, accountId: string): UsageSource {
  return {
    list: async (request, options) => {
      const { rows, nextPageToken } = await api.getUsage({ ...request, accountId }, options);
      return {
        rows: rows.flatMap((row) => (row.usage ? [{ usage: row.usage, accountId: row.accountId }] : [])),
        nextPageToken,
      };
    },
    namesOf: async (split) => {
      if (split === "key") {
        const { apiKeys } = await api.listKeys({ accountId, pageSize: MAX_NAMES });
        return new Map(apiKeys.map(({ id, name }) => [id, name]));
      }
      if (split === "account") {
        const { accounts } = await api.listAccounts({ pageSize: MAX_NAMES });
        return new Map(accounts.map(({ id, name }) => [id, name]));
      }
      return new Map();
    },
  };
}
