import type { Deps } from "../api/define-service.ts";
import { actionOf } from "../api/operator-action.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import { formatMicros } from "../domain/money.ts";
import { SCOPES, toScopeBits } from "../domain/scope.ts";
import { exampleModels } from "../models/built-in.ts";
import { createFirstAccount } from "../store/accounts.ts";
import { SERVER } from "../store/action.ts";

const BALANCE_MICROS = 10_000_000n;
const PLAN = "pro";
const REASON = "demo credit";

/** Creates a demo account on an empty database. Returns its key, which cannot be read again. */
export async function seedDemo(
  deps: Pick<Deps, "database" | "ids" | "generateKey">,
): Promise<string | undefined> {
  const id = deps.ids.account();
  const lane = laneOfId(id);
  const { secret, ...generated } = deps.generateKey(lane);
  const created = await createFirstAccount(
    deps.database,
    actionOf(SERVER, "", deps.ids.request(), { reason: REASON }),
    { id, name: "demo", plan: PLAN },
    { entryId: deps.ids.entry(lane), amountMicros: BALANCE_MICROS, reason: REASON },
    { id: deps.ids.key(lane), scopes: toScopeBits(SCOPES), generated },
  );
  return created ? secret : undefined;
}

/** The terminal text about the demo account. */
export function demoText(secret: string, baseUrl: string, models: readonly Model[]): string {
  const { id: model } = exampleModels(models).generation.model;
  return `
Created the account "demo" with a balance of ${formatMicros(BALANCE_MICROS)} and this key, which is shown only once:

    ${secret}

Try it:

    curl ${baseUrl}/v1/me -H 'Authorization: Bearer ${secret}'

    curl ${baseUrl}/v1/generate -H 'Authorization: Bearer ${secret}' \\
      -H 'content-type: application/json' \\
      -d '{"model": "${model}", "messages": [{"role": "user", "content": "What is a ledger?"}]}'
`;
}
