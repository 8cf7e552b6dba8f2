import type { PlannedCall } from "./plan.ts";

/** What the caller knows of how a call ended. */
export type Ending =
  /** A whole answer came. */
  | "answered"
  /** There was no connection to be had: nothing was sent. */
  | "unreached"
  /** The connection ended before the answer did. */
  | "broken"
  /** The caller left, as planned. */
  | "left"
  /** No answer in the time the caller has. */
  | "silent";

/** One call and what became of it. Times are milliseconds of one clock that never goes back. */
export type Entry = PlannedCall & {
  readonly plannedAt: number;
  readonly sentAt: number;
  readonly endedAt: number;
  readonly ending: Ending;
  readonly status: number;
  /** The code of the error, also of one that ended a stream. */
  readonly code: string;
  /** "gen_…" of a reply; the id of a key that was made. */
  readonly id: string;
  readonly content: string;
  /** Of a stream: how many pieces came, and whether the summary did. */
  readonly pieces: number;
  readonly isDone: boolean;
  readonly costMicros: bigint | undefined;
  /** The whole body where it is an error, to look for what must not stand there. */
  readonly errorText: string;
};

/** Everything that was sent in an episode. */
export class History {
  readonly entries: Entry[] = [];
  /** Planned, but not sent: too many were on their way. */
  dropped = 0;
  /** Sent noticeably after their time. */
  late = 0;

  add(entry: Entry): void {
    this.entries.push(entry);
  }
}

/** A generation that was answered in full. */
export function isReply(entry: Entry): boolean {
  if (entry.kind === "generate") return entry.ending === "answered" && entry.status === 200;
  return entry.kind === "stream" && entry.isDone;
}

export function isGeneration(entry: Entry): boolean {
  return entry.kind === "generate" || entry.kind === "stream";
}

/** The caller was told that nothing happened. */
export function isRefusal(entry: Entry): boolean {
  if (entry.ending === "unreached") return true;
  return entry.ending === "answered" && entry.status >= 400 && entry.status < 500;
}

/** The server, or the way to it, failed. */
export function isFailure(entry: Entry): boolean {
  if (entry.ending === "left") return false;
  if (entry.ending !== "answered") return true;
  return entry.status >= 500 || (entry.status === 200 && entry.kind === "stream" && !entry.isDone);
}

/** It failed, and the plan had not said that it would. */
export function isUnplannedFailure(entry: Entry): boolean {
  if (!isFailure(entry)) return false;
  if (isCutByDeadline(entry)) return false;
  if (entry.reply?.mode === "refuse" || entry.reply?.mode === "break") return false;
  return entry.race !== "revocation" || entry.kind !== "stream";
}

/** The deadline that the caller set has passed. */
export function isCutByDeadline(entry: Entry): boolean {
  return entry.deadlineMs !== undefined && entry.code === "deadline_exceeded";
}

/** The key of a stream was revoked while it ran, perhaps before its first piece: then the answer is a 401. */
export function isCutByRevocation(entry: Entry): boolean {
  return entry.kind === "stream" && entry.code === "revoked_api_key";
}
