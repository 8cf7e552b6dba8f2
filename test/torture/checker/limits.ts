import { type Entry, isGeneration, isRefusal, isReply } from "../history.ts";
import { METRICS, type Metric } from "../limits.ts";
import { maxInputTokens } from "../settings.ts";
import { priceOf } from "../tenants.ts";
import { promptOf } from "../upstream.ts";
import { describe, type Facts, type Violation } from "./facts.ts";

const RULE = "13 limits refuse only what does not fit";
/** Without faults, the hold of a call that was cut is released by then. */
const RELEASED_MS = 2_000;
/** Between the clock of the history and that of the database. */
const CLOCK_MS = 1_000;

/** The details of a refusal: the limit, and what it had counted. */
type Refusal = Readonly<
  Record<"limit_owner" | "metric" | "window" | "model" | "per" | "amount" | "spent" | "held" | "needed", string>
>;

/**
 * Invariant 13, for each call that a limit refused: its key had the limit, the call did not fit, and what the limit had counted was
 * not more than what the other calls can have used and held. Returns the number of such calls by metric.
 */
export function checkLimitRefusals(facts: Facts): { violations: Violation[]; refused: Map<string, number> } {
  const violations: Violation[] = [];
  const refused = new Map<string, number>();
  for (const entry of facts.entries) {
    const refusal = refusalOf(entry);
    if (!refusal) continue;
    refused.set(refusal.metric, (refused.get(refusal.metric) ?? 0) + 1);
    const problem = problemWith(facts, entry, refusal);
    if (problem !== undefined)
      violations.push({ rule: RULE, text: `${problem}: ${describe(entry)}, ${JSON.stringify(refusal)}` });
  }
  return { violations, refused };
}

/** Unless limits of each metric refuse calls in episodes without faults, their refusals are not checked. */
export function checkReached(refused: readonly ReadonlyMap<string, number>[]): Violation[] {
  return METRICS.filter((metric) => !refused.some((each) => each.has(metric))).map((metric) => ({
    rule: "limits of each metric refuse calls",
    text: `no limit of ${metric} did`,
  }));
}

function refusalOf(entry: Entry): Refusal | undefined {
  if (!isGeneration(entry) || !entry.errorText.includes('"limit_id"')) return undefined;
  const { error } = JSON.parse(entry.errorText) as { error: { details: { metadata?: Refusal }[] } };
  return error.details.find(({ metadata }) => metadata)?.metadata;
}

function problemWith(facts: Facts, entry: Entry, refusal: Refusal): string | undefined {
  const [amount, used, needed] = [BigInt(refusal.amount), BigInt(refusal.spent) + BigInt(refusal.held), BigInt(refusal.needed)];
  if (used + needed <= amount) return "the call fits";
  const most = mostOf(entry)[refusal.metric as Metric];
  if (needed > most) return `the call needs at most ${most}`;
  // What a failed primary had committed is not known.
  if (facts.lostCommits || facts.splitBrain) return undefined;
  if (!validAmounts(facts, entry, refusal).includes(Number(amount))) return "the limit did not have this amount";
  const bound = facts.entries
    .filter((other) => other !== entry && isCounted(facts, other, entry, refusal))
    .reduce((sum, other) => sum + useOf(facts, other, entry, refusal), 0n);
  return used > bound ? `other calls can have used at most ${bound}` : undefined;
}

/**
 * The amounts that the limit can have had during the call: those of the last change that was certainly made before it, and of each
 * that may have been made since.
 */
function validAmounts(facts: Facts, entry: Entry, refusal: Refusal): number[] {
  const changes = facts.entries.filter(
    ({ kind, victim = "", sentAt }) =>
      kind === "set_limits" && facts.tenants.keys.get(victim)?.id === refusal.limit_owner && sentAt < entry.endedAt,
  );
  const isCertain = ({ ending, status }: Entry) => ending === "answered" && status === 200;
  const before = changes.filter((change) => isCertain(change) && change.endedAt < entry.sentAt);
  const last = Math.max(...before.map(({ sentAt }) => sentAt));
  const possible = changes.filter((change) => !isRefusal(change) && (!isCertain(change) || change.endedAt >= last));
  const first = before.length === 0 ? (facts.tenants.limits.get(refusal.limit_owner) ?? []) : [];
  const later = possible.flatMap(({ limits = [], endedAt }) =>
    limits.map(({ temporaryMs = 0, temporaryAmount, ...limit }) => {
      const isOver = endedAt + temporaryMs + CLOCK_MS < entry.sentAt && !facts.hasClockSteps;
      return { ...limit, temporaryAmount: isOver ? undefined : temporaryAmount };
    }),
  );
  return [...first, ...later]
    .filter(({ metric, window = "", model = "", per = "" }) => {
      const { metric: ofMetric, window: ofWindow, model: ofModel, per: ofPer } = refusal;
      return metric === ofMetric && window === ofWindow && model === ofModel && per === ofPer;
    })
    .flatMap(({ amount, temporaryAmount = amount }) => [amount, temporaryAmount]);
}

/** Whether the limit counts the other call: one of its account, of its key or of a key created by it, or of a key of its plan. */
function isCounted({ tenants }: Facts, other: Entry, entry: Entry, { limit_owner: owner, per }: Refusal): boolean {
  if (!isGeneration(other) || isRefusal(other) || other.sentAt > entry.endedAt) return false;
  const key = tenants.keys.get(other.key);
  if (key?.accountId !== tenants.keys.get(entry.key)?.accountId || (per === "user" && other.user !== entry.user)) return false;
  return !owner.startsWith("key_") || key?.id === owner || key?.ancestors.includes(owner) === true;
}

/** The most that the other call can have held, or what it used if it was settled before the refused call began. */
function useOf(facts: Facts, other: Entry, { sentAt }: Entry, { metric }: Refusal): bigint {
  const name = metric as Metric;
  const isSettled = other.endedAt < sentAt && isReply(other);
  const isReleased = facts.isCalm && other.endedAt + RELEASED_MS < sentAt;
  if (!isSettled && !isReleased) return mostOf(other)[name];
  const rows = facts.rowsByRequest.get(other.requestId) ?? [];
  const used = rows.map(({ inputTokens, outputTokens, amountMicros }) => ({
    concurrent: 0n,
    generations: 1n,
    tokens: inputTokens + outputTokens,
    cost: -amountMicros,
  }));
  return used.reduce((sum, row) => sum + row[name], 0n);
}

/** What the hold of a call needs at most. */
function mostOf({ op, reply, maxTokens = 0 }: Entry): Record<Metric, bigint> {
  const input = reply ? maxInputTokens(Buffer.byteLength(promptOf(op, reply))) : 0n;
  const output = BigInt(maxTokens);
  return { concurrent: 1n, generations: 1n, tokens: input + output, cost: priceOf(input, output) };
}
