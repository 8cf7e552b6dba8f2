import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { defineService, type ServiceDeps } from "../api/define-service.ts";
import { limitStreams, MAX_LONG_READS, watchAudit } from "../audit/run-audit.ts";
import { DomainError } from "../domain/errors.ts";
import type { WatchOverview } from "./overview-feed.ts";

export type OperatorDeps = ServiceDeps & { readonly watchOverview: WatchOverview };

export const consoleService = defineService<typeof ConsoleService, OperatorDeps>(ConsoleService, {
  watchOverview: async function* (deps, _request, call) {
    for await (const overview of deps.watchOverview(call.operator.id, call.signal)) {
      // Without a database, no revocation can be stored, and the console shows that it is down.
      await call.recheck().catch(ifRefused);
      yield overview;
    }
  },
  watchAudit: limitStreams(MAX_LONG_READS, watchAudit),
});

function ifRefused(error: unknown): void {
  const isOutage = error instanceof DomainError && /^(unavailable|overloaded)$/.test(error.reason);
  if (!isOutage) throw error;
}
