import type { PlannedCall } from "./plan.ts";

/** How a call ended, as far as the caller knows. */
export type Ending =
  /** A whole response arrived. */
  | "answered"
  /** No connection could be opened, so nothing was sent. */
  | "unreached"
  /** The connection ended before the response did. */
  | "broken"
  /** The caller disconnected, as planned. */
  | "left"
  /** No response within the caller's timeout. */
  | "silent";

/** One call and its outcome. Times are milliseconds of a monotonic clock. */
export type Entry = PlannedCall & {
  readonly plannedAt: number;
  readonly sentAt: number;
  readonly endedAt: number;
  readonly ending: Ending;
  readonly status: number;
  /** The code of the error, including an error that ended a stream. */
  readonly code: string;
  /** "gen_…" for a reply; the id of a created key. */
  readonly id: string;
  readonly content: string;
  /** For a stream: the number of pieces, and whether the summary arrived. For a re-rating: whether it ended without an error. */
  readonly pieces: number;
  readonly isDone: boolean;
  readonly costMicros: bigint | undefined;
  /** The whole body of an error, which is searched for keys. */
  readonly errorText: string;
  /** Whether the response shows what the call costs the operator, and where. */
  readonly showsCosts: boolean;
};

/** All calls of an episode. */
export class History {
  readonly entries: Entry[] = [];
  /** Planned calls that were not sent, because too many were in flight. */
  dropped = 0;
  /** Calls sent noticeably after their planned time. */
  late = 0;

  add(entry: Entry): void {
    this.entries.push(entry);
  }
}

/** A generation with a complete reply. */
export function isReply(entry: Entry): boolean {
  if (entry.kind === "generate") return entry.ending === "answered" && entry.status === 200;
  return entry.kind === "stream" && entry.isDone;
}

export function isGeneration(entry: Entry): boolean {
  return entry.kind === "generate" || entry.kind === "stream";
}

/** The caller knows that the call had no effect. */
export function isRefusal(entry: Entry): boolean {
  if (entry.ending === "unreached") return true;
  return entry.ending === "answered" && entry.status >= 400 && entry.status < 500;
}

/** The server or the network failed. */
export function isFailure(entry: Entry): boolean {
  if (entry.ending === "left") return false;
  if (entry.ending !== "answered") return true;
  return entry.status >= 500 || (entry.status === 200 && entry.kind === "stream" && !entry.isDone);
}

/** The call failed, and the plan contains no reason for it. */
export function isUnplannedFailure(entry: Entry): boolean {
  if (!isFailure(entry)) return false;
  if (isCutByDeadline(entry)) return false;
  if (entry.reply?.mode === "refuse" || entry.reply?.mode === "break") return false;
  return entry.race !== "revocation" || entry.kind !== "stream";
}

/** The caller's deadline has passed. */
export function isCutByDeadline(entry: Entry): boolean {
  return entry.deadlineMs !== undefined && entry.code === "deadline_exceeded";
}

/** The key was revoked while the stream ran. Before the first piece, the response is a 401. */
export function isCutByRevocation(entry: Entry): boolean {
  return entry.kind === "stream" && entry.code === "revoked_api_key";
}
