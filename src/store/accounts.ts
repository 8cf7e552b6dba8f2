import type { NewKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { entryIdOf, isAccountId, isGenerationId, monthOfId } from "../domain/ids.ts";
import { LANE_COUNT, type Lane, laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { cutPage, joinPosition, type Page, pageUpTo, splitPosition } from "../domain/page.ts";
import type { ScopeBits } from "../domain/scope.ts";
import { type Action, change } from "./action.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";
import { compareBytes, mergeCells, NAME_PIECES, readNameParts } from "./merge-cells.ts";
import { namedCell } from "./named-cell.ts";
import type { Identity } from "./operators.ts";

export type AccountRow = {
  id: string;
  name: string;
  plan: string;
  balance_micros: bigint;
  held_micros: bigint;
  created_at: Date;
  suspended_at: Date | null;
  external_id: string;
  email: string;
  notes: string;
  /** The threshold of the event balance.low; null for none. */
  low_balance_micros: bigint | null;
  /** What reversed payments still cost the account. */
  owed_micros: bigint;
  closed_at: Date | null;
  /** Whether it has credits that expire or are promotional. */
  has_grants: boolean;
  /** The charges of today and of this month, in UTC, as of the last refresh of the figures. */
  day_micros: bigint;
  month_micros: bigint;
};

type AccountProfile = {
  readonly externalId?: string | undefined;
  readonly email?: string | undefined;
  readonly notes?: string | undefined;
};

/** An undefined field is not changed; an empty one is removed. */
type AccountChanges = AccountProfile & {
  readonly name?: string | undefined;
  readonly lowBalanceMicros?: Micros | undefined;
};

export async function createAccount(
  database: Cells,
  action: Action,
  { id, name, plan }: { readonly id: string; readonly name: string; readonly plan: string },
  profile?: AccountProfile,
): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await change<AccountRow>(
    database,
    lane,
    action,
    "create_account",
    lane,
    id,
    name,
    plan,
    profile?.externalId ?? null,
    profile?.email ?? null,
    profile?.notes ?? null,
  );
  return row as AccountRow;
}

export async function getAccount(database: Cells, id: string): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await database.at(lane).call<AccountRow>("get_account", lane, id);
  if (!row) throw new DomainError("not_found", { message: `There is no account "${id}".` });
  return row;
}

const MAX_EXPIRED_PER_ROUND = 100;

/** The account with this id or external id, or else with this name. A reference that matches several accounts is refused. */
export async function findAccount(database: Cells, reference: string): Promise<AccountRow> {
  if (isAccountId(reference)) return await getAccount(database, reference);
  const [row, another] = await findInAll(database, reference, true);
  if (another) {
    throw DomainError.ofField("account_id", "is the name or external id of several accounts; give the id");
  }
  if (!row) throw new DomainError("not_found", { message: `There is no account "${reference}".` });
  return row;
}

/**
 * The id of the account with this id, which is returned without a look-up, or with this external id. Not by name: customers choose the
 * names of their accounts, and could choose the external id of another one.
 */
export async function accountIdOf(database: Cells, reference: string): Promise<string> {
  if (isAccountId(reference)) return reference;
  const [row, another] = await findInAll(database, reference, false);
  if (another) throw DomainError.ofField("account_id", "is the external id of several accounts; give the id");
  if (!row) {
    throw new DomainError("not_found", {
      message: `There is no account with the id or external id "${reference}". A change does not accept the name of an account.`,
    });
  }
  return row.id;
}

async function findInAll(database: Cells, reference: string, withNames: boolean): Promise<AccountRow[]> {
  const found = await Promise.all(
    database.all.map(async (_, i) => {
      const rows = await namedCell(database, i).call<AccountRow>("find_accounts", reference, withNames);
      return rows.filter(({ id }) => database.owns(i, laneOfId(id)));
    }),
  );
  const rows = found.flat();
  const withExternalId = rows.filter((row) => row.external_id === reference);
  return withExternalId.length > 0 ? withExternalId : rows;
}

export async function listAccounts(database: Cells, page: Page) {
  const rows = await mergeCells<AccountRow>(database, page.size + 1, {
    read: (cell, after, limit) => cell.call("list_accounts", after?.id ?? page.after, limit),
    compare: (one, other) => compareBytes(other.id, one.id),
    laneOf: ({ id }) => laneOfId(id),
  });
  return cutPage(rows, page, (row) => row.id);
}

export type AccountSort = {
  readonly sort: "newest" | "name" | "lowest_balance" | "highest_balance" | "spent_today" | "spent_month";
  /** Empty for all. */
  readonly state: string;
  /** Only for orders by balance. */
  readonly belowMicros: Micros | undefined;
};

type SortedRow = AccountRow & { term: string };

/** A page of the accounts in an order. */
export async function sortAccounts(database: Cells, { sort, state, belowMicros }: AccountSort, page: Page) {
  const [, term = "", id = ""] = splitPosition(page, 2) ?? [];
  const isName = sort === "name";
  const direction = isName || sort === "lowest_balance" ? 1 : -1;
  const compareTerms = (one: string, other: string) =>
    isName || sort === "newest" ? compareBytes(one, other) : Number(BigInt(one) - BigInt(other));
  const rows = await mergeCells<SortedRow>(database, page.size + 1, {
    read: (cell, last, limit) => {
      const after = last ?? { term, id };
      return cell.call("sort_accounts", sort, state, belowMicros ?? null, after.term, after.id, limit);
    },
    compare: (one, other) => direction * (compareTerms(one.term, other.term) || compareBytes(one.id, other.id)),
    laneOf: (row) => laneOfId(row.id),
  });
  return cutPage(rows, page, (row) => joinPosition([0, row.term, row.id]));
}

/** A statement takes about 50 ms with a million accounts. */
const LANES_PER_REFRESH = 18;
const CHECKS_PER_REFRESH = 60;

/** Keeps what accounts are sorted by up to date: all lanes once a minute. */
export class FiguresUpkeep {
  readonly #cell: FunctionCaller;
  #checks = 0;

  constructor(cell: FunctionCaller) {
    this.#cell = cell;
  }

  /** Called every second. */
  async maintain(): Promise<void> {
    const first = this.#checks * LANES_PER_REFRESH;
    this.#checks = (this.#checks + 1) % CHECKS_PER_REFRESH;
    if (first < LANE_COUNT) await this.#cell.call("refresh_figures", first, first + LANES_PER_REFRESH - 1);
  }
}

export async function setAccountPlan(database: Cells, action: Action, id: string, plan: string): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await change<AccountRow>(database, lane, action, "set_account_plan", lane, id, plan);
  return row as AccountRow;
}

export async function updateAccount(
  database: Cells,
  action: Action,
  id: string,
  { name, externalId, email, notes, lowBalanceMicros }: AccountChanges,
): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await change<AccountRow>(
    database,
    lane,
    action,
    "update_account",
    lane,
    id,
    name ?? null,
    externalId ?? null,
    email ?? null,
    notes ?? null,
    lowBalanceMicros ?? null,
  );
  return row as AccountRow;
}

export type GrantRow = {
  entry_id: string;
  amount_micros: bigint;
  rest_micros: bigint;
  /** Null if it does not expire. */
  expires_at: Date | null;
  is_promotional: boolean;
};

type BalanceWithGrants = Pick<AccountRow, "balance_micros" | "held_micros"> & { grants: GrantRow[] };

/**
 * The unspent credits that expire or are promotional, in the order in which charges take them, with the balance and the held amount of
 * the same snapshot: those of the account's row can be older.
 */
export async function readGrants(database: Cells, account: AccountRow): Promise<BalanceWithGrants> {
  if (!account.has_grants) return { ...account, grants: [] };
  const lane = laneOfId(account.id);
  type Row = BalanceWithGrants & { [Name in keyof GrantRow]: GrantRow[Name] | null };
  const rows = await database.at(lane).call<Row>("account_grants", lane, account.id);
  const { balance_micros, held_micros } = rows[0] ?? account;
  return {
    balance_micros,
    held_micros,
    grants: rows.filter((row): row is Row & GrantRow => row.entry_id !== null),
  };
}

/** Takes what has expired of credits from the balances of a cell. Called every second, at one server or several. */
export async function expireGrants(cell: FunctionCaller): Promise<void> {
  const rows = await cell.call<{ lane: Lane; id: string }>("accounts_to_expire", MAX_EXPIRED_PER_ROUND);
  for (const { lane, id } of rows) await cell.call("expire_account_grants", lane, id);
}

/** Sets the threshold of the event balance.low; null for none. */
export async function setLowBalance(database: Cells, action: Action, id: string, micros: Micros | null): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await change<AccountRow>(database, lane, action, "set_low_balance", lane, id, micros);
  return row as AccountRow;
}

/** Once this returns, every server refuses the account's calls, or admits them again. */
export async function setAccountSuspended(database: Cells, action: Action, id: string, suspended: boolean): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await change<AccountRow>(database, lane, action, "set_account_suspended", lane, id, suspended);
  return row as AccountRow;
}

type FirstCredit = {
  readonly entryId: string;
  readonly amountMicros: Micros;
  readonly reason: string;
};
type FirstKey = {
  readonly id: string;
  readonly scopes: ScopeBits;
  readonly generated: Omit<NewKey, "secret">;
};

/** Creates an account with a credit and a key if the database has no account. Returns whether it did. */
export async function createFirstAccount(
  database: Cells,
  action: Action,
  account: { readonly id: string; readonly name: string; readonly plan: string },
  credit: FirstCredit,
  key: FirstKey,
  owner: (Identity & { readonly id: string }) | undefined,
): Promise<boolean> {
  const lane = laneOfId(account.id);
  const [row] = await change<{ created: boolean }>(
    database,
    lane,
    action,
    "create_first_account",
    lane,
    account.id,
    account.name,
    account.plan,
    credit.entryId,
    monthOfId(credit.entryId),
    credit.amountMicros,
    credit.reason,
    key.id,
    Buffer.from(key.generated.fingerprint, "hex"),
    key.scopes,
    key.generated.visibleStart,
    key.generated.visibleEnd,
    owner?.id ?? null,
    owner?.issuer ?? null,
    owner?.subject ?? null,
    owner?.verifiedEmail ?? null,
  );
  return row?.created === true;
}

/**
 * The searched fields, in the order of the results: the starts of three fields, each with an index, and parts of names, for
 * which all names are read in order. Accounts with the id come before them.
 */
const FIELDS = ["external_id", "email", "name", "part"] as const;

type FoundRow = AccountRow & { term: string; was_found: boolean };

/**
 * A page of the accounts whose id is the text, or the id of something that belongs to them, whose external id, e-mail address or
 * name starts with it, or whose name contains it. A page can have fewer accounts than its size if most of them were found by an earlier field.
 */
export async function searchAccounts(database: Cells, text: string, page: Page, pieces = NAME_PIECES) {
  const [first = 0, afterTerm = "", afterId = ""] = splitPosition(page, 2) ?? [];
  const limit = page.size + 1;
  const rows: (AccountRow & { field: number; term: string })[] = [];
  if (page.after === "") {
    const id = isGenerationId(text) ? entryIdOf(text) : text;
    const lane = laneOfId(id);
    const month = /^led_[0-9a-z]{26}$/.test(id) ? monthOfId(id) : 0;
    const found = await database.at(lane).call<AccountRow>("account_with", lane, id, month);
    rows.push(...found.map((row) => ({ ...row, field: 0, term: "" })));
  }
  let stoppedAt: string | undefined;
  for (let field = first; field < FIELDS.length && rows.length < limit && stoppedAt === undefined; field++) {
    const [term, id] = field === first ? [afterTerm, afterId] : ["", ""];
    const name = FIELDS[field] ?? "name";
    const found = await mergeCells<FoundRow>(database, limit, {
      read: (cell, last, count) => {
        const after = last ?? { term, id };
        return name === "part"
          ? readNameParts<FoundRow & { is_match: boolean }, typeof after>(after, count, pieces, (start, read, missing) =>
              cell.call("search_names", text, start.term, start.id, read, missing),
            )
          : cell.call("search_accounts", name, text, after.term, after.id, count);
      },
      compare: (one, other) => compareBytes(one.term, other.term) || compareBytes(one.id, other.id),
      laneOf: (row) => laneOfId(row.id),
    });
    rows.push(...found.filter((row) => !row.was_found).map((row) => ({ ...row, field })));
    const last = found.at(-1);
    if (found.length === limit && last) stoppedAt = joinPosition([field, last.term, last.id]);
  }
  return pageUpTo(rows, page, (row) => joinPosition([row.field, row.term, row.id]), stoppedAt);
}

/** The names of accounts, and of keys and operators, by their ids. */
export async function namesOf(
  database: Cells,
  accountIds: readonly string[],
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const arrayOf = (ids: readonly string[]) => JSON.stringify([...new Set(ids)].filter((id) => id !== ""));
  type Row = { id: string; name: string };
  const [accounts, keys] = [arrayOf(accountIds), arrayOf(keyIds)];
  const found = await Promise.all(
    database.all.map(async (_, i) => {
      const rows = await namedCell(database, i).call<Row>("names_of", accounts, keys);
      return rows.filter(({ id }) => database.owns(i, laneOfId(id)));
    }),
  );
  return new Map(found.flat().map(({ id, name }) => [id, name]));
}
