import {
  exhaustConnections,
  killDatabase,
  lateStatements,
  lockLanes,
  lockRole,
  pauseDatabase,
  renameFunction,
  stepDatabaseClock,
} from "./databases.ts";
import { failingPrompts } from "./failing-prompts.ts";
import type { Fault } from "./fault.ts";
import { databaseNetwork, upstreamNetwork } from "./network.ts";
import { readOnlyDatabase, routeToStandby } from "./read-only.ts";
import { killAfterCommit, killBeforeSettle, killServer, pauseServer, shiftClocks, terminateServer } from "./servers.ts";

export const NO_FAULT: Fault = { name: "none", isHarmless: true, strike: async () => undefined };

/** Faults that kill a server come first, so that its holds are released while the others run. */
export const FAULTS: readonly Fault[] = [
  NO_FAULT,
  killServer,
  killBeforeSettle,
  killAfterCommit,
  terminateServer,
  shiftClocks,
  stepDatabaseClock,
  ...upstreamNetwork,
  failingPrompts,
  ...databaseNetwork,
  lockLanes,
  lockRole,
  renameFunction,
  lateStatements,
  pauseDatabase(12),
  exhaustConnections,
  routeToStandby,
  readOnlyDatabase,
  pauseServer(10),
  killDatabase,
];

/** Longer than the heartbeat limit: other servers release its holds, and it must detect that. */
export const LONG_PAUSE = pauseServer(26);
