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
import {
  killAfterCommit,
  killBeforeSettle,
  killServer,
  pauseServer,
  shiftClocks,
  terminateServer,
} from "./servers.ts";

export const NO_FAULT: Fault = { name: "none", isHarmless: true, strike: async () => undefined };

/** Those that kill a server come first: what it held is given back while the others have their turn. */
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

/** Longer than the others wait: what the server held is given back, and it must find that out. */
export const LONG_PAUSE = pauseServer(26);
