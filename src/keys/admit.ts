import * as sql from "../../gen/sql/calls.ts";
import { admitItem, CellBatchers, type CellTurns } from "../database/driver/batcher.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import type { DatabaseClock } from "../database/driver/database-clock.ts";
import { DomainError } from "../domain/errors.ts";
import type { Lane } from "../domain/lane.ts";
import { AddressRanges } from "../domain/network.ts";
import { fromScopeBits, type Scope, scopeBit } from "../domain/scope.ts";

/** The admission request of one call. */
export type AdmissionRequest = {
  /** The lane of the key. */
  readonly lane: Lane;
  /** SHA-256 of the key, in hex. */
  readonly fingerprint: string;
  /** The required scope; undefined if any valid key may make the call. */
  readonly scope: Scope | undefined;
  /** Whether the call takes one slot of the key's minute. */
  readonly limited: boolean;
  /** Whether the call may also run while the account is suspended; never one that needs the scope "generate". */
  readonly whileSuspended: boolean;
  /** The address of the caller. */
  readonly address: string;
};

/** Data of the key, read by the statement that decided the admission. */
export type AdmittedKey = {
  readonly keyId: string;
  /** SHA-256 of the secret that the call came with, in hex. */
  readonly fingerprint: string;
  readonly accountId: string;
  readonly keyName: string;
  readonly plan: string;
  readonly scopes: readonly Scope[];
  readonly visibleStart: string;
  readonly visibleEnd: string;
  readonly rateLimitRpm: number;
  readonly balanceMicros: bigint;
  /** The ids of the models that the key may use; undefined for all. */
  readonly models: readonly string[] | undefined;
  /** The version of the account's own prices; 0 without any. */
  readonly priceListVersion: number;
  /** The address ranges from which the key can be used, separated by commas; undefined for all addresses. */
  readonly allowedCidrs: string | undefined;
};

/** Whose call was refused. */
export type RefusedKey = Pick<AdmittedKey, "accountId" | "keyId">;

export type RateWindow = { readonly limit: number; readonly remaining: number; readonly secondsLeft: number };

/** What the caller of an admission gets. */
export type Admission =
  | { readonly outcome: "admitted"; readonly key: AdmittedKey; readonly window: RateWindow | undefined }
  | { readonly outcome: "unknown" }
  | { readonly outcome: "revoked" | "expired" | "suspended"; readonly key: RefusedKey }
  /** Takes no slot. */
  | { readonly outcome: "address_not_allowed"; readonly key: RefusedKey }
  /** Takes no slot. The window is undefined if the method is not rate limited or the window was not read. */
  | { readonly outcome: "out_of_scope"; readonly key: RefusedKey; readonly window: RateWindow | undefined }
  | { readonly outcome: "rate_limited"; readonly key: AdmittedKey; readonly window: RateWindow };

/** The call has the previous secret of a key; the fingerprint is that of the present one. */
type Rotated = {
  readonly outcome: "rotated";
  readonly fingerprint: string;
  readonly visibleStart: string;
  readonly visibleEnd: string;
};

/** The address of the call was checked against other ranges than those of the key, which are known now. */
type Unchecked = { readonly outcome: "unchecked" };

/** Rotated and unchecked calls are sent once more. */
type AdmissionResult = Admission | Rotated | Unchecked;

/** How often a key may be rotated or get other address ranges while one call is admitted. */
const MAX_REPEATS = 6;

/** The limits apply to each cell. */
type AdmitOptions = {
  readonly pipelines: number;
  readonly maxWaiting: number;
  /** One per cell. */
  readonly clocks: readonly DatabaseClock[];
  readonly turns?: CellTurns | undefined;
  readonly onBatch?: (size: number) => void;
};

/** Keeps a statement to a few milliseconds. */
const MAX_BATCH = 1_024;

export class Admitter {
  readonly #batchers: CellBatchers<AdmissionRequest, AdmissionResult>;

  constructor(database: Cells, options: AdmitOptions) {
    const ranges = new KnownRanges();
    this.#batchers = new CellBatchers(database, {
      ...options,
      maxBatch: MAX_BATCH,
      execute: (cell, requests) => admit(cell, requests, ranges),
    });
  }

  get depth(): number {
    return this.#batchers.depth;
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    let { fingerprint } = request;
    let sent: Rotated | undefined;
    for (let repeats = 0; repeats <= MAX_REPEATS; repeats++) {
      const result = await this.#batchers.submit(
        request.lane,
        fingerprint === request.fingerprint ? request : { ...request, fingerprint },
      );
      if (result.outcome === "unchecked") continue;
      if (result.outcome === "rotated") {
        sent ??= result;
        ({ fingerprint } = result);
        continue;
      }
      if (result.outcome !== "admitted" || !sent) return result;
      const { visibleStart, visibleEnd } = sent;
      return {
        ...result,
        key: { ...result.key, fingerprint: request.fingerprint, visibleStart, visibleEnd },
      };
    }
    throw new DomainError("unavailable");
  }
}

/** In the place of a scope, for methods that every key may call. */
const ANY_SCOPE = "any_scope";

/** Calls that need the scope and take a slot. */
type SlotCounts = Record<Scope | typeof ANY_SCOPE, number>;

/** All calls of a batch with the same key. */
type Group = SlotCounts & {
  readonly lane: Lane;
  readonly fingerprint: { readonly hex: string };
  /** Those of them that may also run while the account is suspended. */
  whileSuspended?: SlotCounts;
  readonly calls: number[];
  /** The address ranges of the key as they were last read; undefined for all addresses. */
  readonly ranges: AddressRanges | undefined;
  /** Their text. */
  readonly cidrs: string | undefined;
  /** Whether any call comes from these addresses. */
  isUsed: boolean;
};

/** Whether a call comes from the addresses of its key. */
function isFrom({ ranges }: Pick<Group, "ranges">, { address }: AdmissionRequest): boolean {
  return ranges === undefined || ranges.has(address);
}

/** Keys with address ranges are few; the limit bounds the memory. */
const MAX_KNOWN_RANGES = 10_000;

/**
 * The address ranges of keys as they were last read, by fingerprint. They never decide alone: the statement that admits a call
 * compares them with those of the key.
 */
class KnownRanges {
  readonly #ranges = new Map<string, AddressRanges>();

  get(fingerprint: string): AddressRanges | undefined {
    return this.#ranges.get(fingerprint);
  }

  set(fingerprint: string, text: string | null): void {
    if (text === null) {
      if (this.#ranges.size > 0) this.#ranges.delete(fingerprint);
      return;
    }
    if (this.#ranges.get(fingerprint)?.text === text) return;
    const [oldest] = this.#ranges.keys();
    if (this.#ranges.size >= MAX_KNOWN_RANGES && oldest !== undefined) this.#ranges.delete(oldest);
    this.#ranges.set(fingerprint, new AddressRanges(text));
  }
}

async function admit(
  cell: FunctionCaller,
  requests: readonly AdmissionRequest[],
  ranges: KnownRanges,
): Promise<AdmissionResult[]> {
  const groups = [...groupByKey(requests, ranges).values()];
  const rows = await sql.admit(cell, {
    // Without counts, the key is not recorded as used.
    items: admitItem.arrayOf(groups.map((group) => (group.isUsed ? group : uncounted(group)))),
    whileSuspended: admitItem.arrayOf(groups.map(({ whileSuspended }) => whileSuspended ?? {})),
  });
  const admissions = new Array<AdmissionResult>(requests.length).fill({ outcome: "unknown" });
  for (const row of rows) {
    const group = groups[row.n - 1];
    if (!group) continue;
    if (row.state !== "rotated") ranges.set(group.fingerprint.hex, row.allowed_cidrs);
    decideGroup(row, group, requests, admissions);
  }
  return admissions;
}

function groupByKey(requests: readonly AdmissionRequest[], ranges: KnownRanges): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const [i, request] of requests.entries()) {
    let group = groups.get(request.fingerprint);
    if (!group) {
      const known = ranges.get(request.fingerprint);
      group = {
        lane: request.lane,
        fingerprint: { hex: request.fingerprint },
        ...noSlots(),
        calls: [],
        ranges: known,
        cidrs: known?.text,
        isUsed: false,
      };
      groups.set(request.fingerprint, group);
    }
    group.calls.push(i);
    if (!isFrom(group, request)) continue;
    group.isUsed = true;
    if (request.whileSuspended) group.whileSuspended ??= noSlots();
    if (request.limited) {
      const scope = request.scope ?? ANY_SCOPE;
      group[scope]++;
      if (request.whileSuspended && group.whileSuspended) group.whileSuspended[scope]++;
    }
  }
  return groups;
}

function uncounted({ lane, fingerprint, cidrs }: Group) {
  return { lane, fingerprint, cidrs };
}

function noSlots(): SlotCounts {
  return { generate: 0, read: 0, keys: 0, webhooks: 0, billing: 0, any_scope: 0 };
}

/** Hands the granted slots to the calls of one key in the order they arrived. */
function decideGroup(row: sql.Admission, group: Group, requests: readonly AdmissionRequest[], admissions: AdmissionResult[]) {
  const { calls } = group;
  if (row.state === "rotated") {
    const fingerprint = row.current_fingerprint?.toString("hex") ?? "";
    const { visible_start: visibleStart, visible_end: visibleEnd } = row;
    for (const i of calls) admissions[i] = { outcome: "rotated", fingerprint, visibleStart, visibleEnd };
    return;
  }
  const key: AdmittedKey = {
    keyId: row.key_id,
    fingerprint: group.fingerprint.hex,
    accountId: row.account_id,
    keyName: row.key_name,
    plan: row.plan,
    scopes: fromScopeBits(row.scopes),
    visibleStart: row.visible_start,
    visibleEnd: row.visible_end,
    rateLimitRpm: row.rpm,
    balanceMicros: row.balance_micros,
    models: row.models?.split(","),
    priceListVersion: row.price_list_version,
    allowedCidrs: row.allowed_cidrs ?? undefined,
  };
  let granted = 0;
  const windowNow = (): RateWindow | undefined =>
    row.used === null
      ? undefined
      : {
          limit: row.rpm,
          remaining: Math.max(0, row.rpm - row.used + row.granted - granted),
          secondsLeft: row.seconds_left,
        };
  for (const i of calls) {
    const request = requests[i];
    if (!request) continue;
    if (row.state !== "active" && !(row.state === "suspended" && request.whileSuspended)) {
      admissions[i] = { outcome: row.state, key };
    } else if (row.allowed_cidrs !== (group.cidrs ?? null)) {
      admissions[i] = { outcome: "unchecked" };
    } else if (!isFrom(group, request)) {
      admissions[i] = { outcome: "address_not_allowed", key };
    } else if (request.scope && (row.scopes & scopeBit(request.scope)) === 0) {
      admissions[i] = { outcome: "out_of_scope", key, window: request.limited ? windowNow() : undefined };
    } else if (!request.limited) {
      admissions[i] = { outcome: "admitted", key, window: undefined };
    } else if (granted < row.granted) {
      granted++;
      admissions[i] = { outcome: "admitted", key, window: windowNow() };
    } else {
      const window = { limit: row.rpm, remaining: 0, secondsLeft: row.seconds_left };
      admissions[i] = { outcome: "rate_limited", key, window };
    }
  }
}
