import type { Lane } from "../../../src/domain/lane.ts";
import type { Random } from "../../fuzz/random.ts";
import type { Arena } from "../arena.ts";
import type { Window } from "../checker/facts.ts";

export type FaultScene = {
  readonly arena: Arena;
  readonly random: Random;
  /** Index of the server that the fault hits. */
  readonly victim: number;
  /** Called when the database is killed. */
  readonly onDatabaseKill: () => void;
  /** Called when calls can succeed again, if the fault goes on. */
  readonly onHealed: () => void;
  /** Called when the database may have lost what it committed in this time. */
  readonly onCommitsLost: (window: Window) => void;
  /** Called when servers may have used two primaries. */
  readonly onSplitBrain: (window: Window) => void;
  /** Called when a cell with these lanes fails: calls to other lanes must not. */
  readonly onCellFailure: (lanes: readonly Lane[]) => void;
  /** Called when a server is killed, whose holds must then be released. */
  readonly onServerKill: (serverId: string) => void;
  /** Called when the database's clock begins to differ from that of this machine. */
  readonly onClockStep: () => void;
  /** Called when a rule of the fault itself is broken. */
  readonly onViolation: (rule: string, text: string) => void;
};

/** A fault. It begins when it is called and is over when the promise resolves. */
export type Fault = {
  readonly name: string;
  /** Whether a server dies or is considered dead, so that the state in its memory is not charged. */
  readonly losesServers?: boolean;
  /** Whether callers notice nothing but latency. */
  readonly isHarmless?: boolean;
  /** Duration of a long fault, for which the load is extended. */
  readonly lastsSeconds?: number;
  /** Setup before the load begins. */
  readonly prepare?: (arena: Arena) => Promise<unknown>;
  readonly strike: (scene: FaultScene) => Promise<void>;
};
