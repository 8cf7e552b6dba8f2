import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import { compareBytes, mergeCells, NAME_PIECES, readNameParts } from "../database/cells/merge-cells.ts";
import { namedCell } from "../database/cells/named-cell.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import type { NewKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { entryIdOf, isAccountId, isGenerationId, monthOfId } from "../domain/ids.ts";
import { LANE_COUNT, laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { cutPage, joinPosition, type Page, pageUpTo, splitPosition } from "../domain/page.ts";
import type { ScopeBits } from "../domain/scope.ts";
import type { Identity } from "../operators/store.ts";

export type AccountRow = Omit<sql.AccountViews, "lane">;

type AccountProfile = {
  readonly external_id?: string | null | undefined;
  readonly email?: string | undefined;
  readonly notes?: string | undefined;
};

/** An undefined field is not changed; null removes its value. */
type AccountChanges = AccountProfile & {
  readonly name?: string | undefined;
  /** The threshold of the event balance.low. */
  readonly low_balance_micros?: Micros | null | undefined;
};

export async function createAccount(
  database: Cells,
  action: Action,
  { id, name, plan }: { readonly id: string; readonly name: string; readonly plan: string },
  profile: AccountProfile = {},
): Promise<AccountRow> {
  const [row] = await sql.createAccount(database, action, {
    lane: laneOfId(id),
    id,
    name,
    plan,
    profile: JSON.stringify(profile),
  });
  return row as AccountRow;
}

export async function getAccount(database: Cells, id: string): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await sql.getAccount(database.at(lane), { lane, id });
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
      const rows = await sql.findAccounts(namedCell(database, i), { reference, withNames });
      return rows.filter(({ id }) => database.owns(i, laneOfId(id)));
    }),
  );
  const rows = found.flat();
  const withExternalId = rows.filter((row) => row.external_id === reference);
  return withExternalId.length > 0 ? withExternalId : rows;
}

export async function listAccounts(database: Cells, page: Page) {
  const rows = await mergeCells<AccountRow>(database, page.size + 1, {
    read: (cell, after, limit) => sql.listAccounts(cell, { before: after?.id ?? page.after, limit }),
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

/** A page of the accounts in an order. */
export async function sortAccounts(database: Cells, { sort, state, belowMicros }: AccountSort, page: Page) {
  const [, term = "", id = ""] = splitPosition(page, 2) ?? [];
  const isName = sort === "name";
  const direction = isName || sort === "lowest_balance" ? 1 : -1;
  const compareTerms = (one: string, other: string) =>
    isName || sort === "newest" ? compareBytes(one, other) : Number(BigInt(one) - BigInt(other));
  const rows = await mergeCells<sql.FoundAccounts>(database, page.size + 1, {
    read: (cell, last, limit) => {
      const after = last ?? { term, id };
      return sql.sortAccounts(cell, { sort, state, below: belowMicros, after: after.term, afterId: after.id, limit });
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
    if (first < LANE_COUNT) await sql.refreshFigures(this.#cell, { first, last: first + LANES_PER_REFRESH - 1 });
  }
}

export async function setAccountPlan(database: Cells, action: Action, id: string, plan: string): Promise<AccountRow> {
  const [row] = await sql.setAccountPlan(database, action, { lane: laneOfId(id), id, plan });
  return row as AccountRow;
}

export async function updateAccount(database: Cells, action: Action, id: string, changes: AccountChanges): Promise<AccountRow> {
  const { low_balance_micros: micros } = changes;
  const columns = { ...changes, low_balance_micros: typeof micros === "bigint" ? micros.toString() : micros };
  const [row] = await sql.updateAccount(database, action, { lane: laneOfId(id), id, changes: JSON.stringify(columns) });
  return row as AccountRow;
}

/** A credit; `expires_at` is null if it does not expire. */
export type GrantRow = { [Name in GrantColumn]: NonNullable<sql.AccountGrantsRow[Name]> } & Pick<
  sql.AccountGrantsRow,
  "expires_at"
>;

type GrantColumn = "entry_id" | "amount_micros" | "rest_micros" | "is_promotional";
type BalanceWithGrants = Pick<AccountRow, "balance_micros" | "held_micros"> & { grants: GrantRow[] };

/**
 * The unspent credits that expire or are promotional, in the order in which charges take them, with the balance and the held amount of
 * the same snapshot: those of the account's row can be older.
 */
export async function readGrants(database: Cells, account: AccountRow): Promise<BalanceWithGrants> {
  if (!account.has_grants) return { ...account, grants: [] };
  const lane = laneOfId(account.id);
  const rows = await sql.accountGrants(database.at(lane), { lane, accountId: account.id });
  const { balance_micros, held_micros } = rows[0] ?? account;
  return {
    balance_micros,
    held_micros,
    grants: rows.filter((row): row is typeof row & GrantRow => row.entry_id !== null),
  };
}

/** Takes what has expired of credits from the balances of a cell. Called every second, at one server or several. */
export async function expireGrants(cell: FunctionCaller): Promise<void> {
  for (const account of await sql.accountsToExpire(cell, { limit: MAX_EXPIRED_PER_ROUND }))
    await sql.expireAccountGrants(cell, account);
}

/** Once this returns, every server refuses the account's calls, or admits them again. */
export async function setAccountSuspended(database: Cells, action: Action, id: string, suspended: boolean): Promise<AccountRow> {
  const [row] = await sql.setAccountSuspended(database, action, { lane: laneOfId(id), id, suspended });
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
  const [row] = await sql.createFirstAccount(database, action, {
    lane: laneOfId(account.id),
    ...account,
    ...credit,
    month: monthOfId(credit.entryId),
    keyId: key.id,
    scopes: key.scopes,
    ...key.generated,
    fingerprint: Buffer.from(key.generated.fingerprint, "hex"),
    ownerId: owner?.id,
    ownerIssuer: owner?.issuer,
    ownerSubject: owner?.subject,
    ownerEmail: owner?.verifiedEmail,
  });
  return row?.created === true;
}

/**
 * The searched fields, in the order of the results: the starts of three fields, each with an index, and parts of names, for
 * which all names are read in order. Accounts with the id come before them.
 */
const FIELDS = ["external_id", "email", "name", "part"] as const;

type FoundRow = sql.FoundAccounts;

/**
 * A page of the accounts whose id is the text, or the id of something that belongs to them, whose external id, e-mail address or
 * name starts with it, or whose name contains it. A page can have fewer accounts than its size if most of them were found by an earlier field.
 */
export async function searchAccounts(database: Cells, text: string, page: Page, pieces = NAME_PIECES) {
  const [first = 0, afterTerm = "", afterId = ""] = splitPosition(page, 2) ?? [];
  const limit = page.size + 1;
  const rows: (Omit<FoundRow, "is_match" | "was_found"> & { field: number })[] = [];
  if (page.after === "") {
    const id = isGenerationId(text) ? entryIdOf(text) : text;
    const lane = laneOfId(id);
    const month = /^led_[0-9a-z]{26}$/.test(id) ? monthOfId(id) : 0;
    const found = await sql.accountWith(database.at(lane), { lane, id, month });
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
          ? readNameParts<FoundRow, typeof after>(after, count, pieces, (start, read, missing) =>
              sql.searchNames(cell, { search: text, after: start.term, afterId: start.id, rows: read, limit: missing }),
            )
          : sql.searchAccounts(cell, { field: name, search: text, after: after.term, afterId: after.id, limit: count });
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
  const ids = { accountIds: arrayOf(accountIds), keyIds: arrayOf(keyIds) };
  const found = await Promise.all(
    database.all.map(async (_, i) => {
      const rows = await sql.namesOf(namedCell(database, i), ids);
      return rows.filter(({ id }) => database.owns(i, laneOfId(id)));
    }),
  );
  return new Map(found.flat().map(({ id, name }) => [id, name]));
}
