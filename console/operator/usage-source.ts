import type { UsageSource } from "../shared/usage.ts";
import type { AdminClient } from "./operator-session.ts";

/** The usage of one account, or of all accounts together if the id is empty. */
export function usageOf(api: AdminClient, accountId: string): UsageSource {
  return {
    list: async (request, options) => {
      const { rows, nextPageToken } = await api.getUsage({ ...request, accountId }, options);
      return {
        rows: rows.flatMap(({ usage, ...row }) => (usage ? [{ usage, ...row }] : [])),
        nextPageToken,
      };
    },
  };
}
