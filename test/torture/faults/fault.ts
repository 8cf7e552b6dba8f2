import type { Random } from "../../fuzz/random.ts";
import type { Arena } from "../arena.ts";

export type FaultScene = {
  readonly arena: Arena;
  readonly random: Random;
  /** Which server is struck. */
  readonly victim: number;
  /** Told at the moment the database is killed. */
  readonly onDatabaseKill: () => void;
  /** Told at the moment a server is killed: what it holds will have to be given back. */
  readonly onServerKill: (serverId: string) => void;
  /** Told when the database's clock is not that of this machine any more. */
  readonly onClockStep: () => void;
  /** A rule of the fault's own that did not hold. */
  readonly onViolation: (rule: string, text: string) => void;
};

/** Something that breaks. It begins when it is called and is over when the promise resolves. */
export type Fault = {
  readonly name: string;
  /** A server dies, or is taken for dead: what it had in memory is not charged. */
  readonly losesServers?: boolean;
  /** Callers notice nothing but time. */
  readonly isHarmless?: boolean;
  /** Where it is more than a moment: the load goes on for longer. */
  readonly lastsSeconds?: number;
  /** What has to be there before the load begins. */
  readonly prepare?: (arena: Arena) => Promise<unknown>;
  readonly strike: (scene: FaultScene) => Promise<void>;
};
