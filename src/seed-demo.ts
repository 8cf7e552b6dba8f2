import { formatMicros } from "./domain/money.ts";
import { SCOPES } from "./domain/scope.ts";
import type { Deps } from "./services/deps.ts";
import { newKey } from "./services/new-key.ts";
import { createFirstAccount } from "./store/accounts.ts";
import { moveBalance } from "./store/ledger.ts";

const BALANCE_MICROS = 10_000_000n;
const PLAN = "pro";

/** On an empty database: an account to try everything with. Returns its key the one time it can be seen. */
export async function seedDemo(deps: Deps): Promise<string | undefined> {
  const account = await createFirstAccount(deps.database, deps.ids.account(), "demo", PLAN);
  if (!account) return undefined;
  await moveBalance(deps.database, {
    entryId: deps.ids.entry(),
    accountId: account.id,
    kind: "credit",
    amountMicros: BALANCE_MICROS,
    reason: "demo credit",
    idempotencyKey: "demo",
  });
  const place = { accountId: account.id, plan: PLAN, mayExceedPlan: false };
  const { secret } = await newKey(deps, place, { name: "demo", scopes: SCOPES });
  return secret;
}

/** What the person at the terminal is told about it. */
export function demoText(secret: string, baseUrl: string): string {
  return `
An account "demo" was created with a balance of ${formatMicros(BALANCE_MICROS)} and this key. It is shown this once:

    ${secret}

Try it:

    curl ${baseUrl}/v1/me -H 'Authorization: Bearer ${secret}'
`;
}
