import { createFirstAccount } from "../accounts/store.ts";
import type { Deps } from "../api/define-service.ts";
import { SERVER } from "../database/action.ts";
import { DEMO_OWNER } from "../domain/demo-owner.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import { formatMicros } from "../domain/money.ts";
import { SCOPES, toScopeBits } from "../domain/scope.ts";
import { exampleModels } from "../models/built-in.ts";
import type { Catalog } from "../models/catalog.ts";
import { actionOf } from "../operators/operator-action.ts";
import type { Config } from "./settings/config.ts";

const BALANCE_MICROS = 10_000_000n;
const PLAN = "pro";
const REASON = "demo credit";

/** Creates a demo account on an empty database, with an owner or without. Returns its key, which cannot be read again. */
export async function seedDemo(
  deps: Pick<Deps, "database" | "ids" | "generateKey">,
  hasOwner: boolean,
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
    hasOwner ? { ...DEMO_OWNER, id: deps.ids.person() } : undefined,
  );
  return created ? secret : undefined;
}

/** Whether the server lets callers of this machine sign in as the owner of the demo account. Models can be reloaded. */
export function isDemoOwnerOffered(
  { allowsDemoOwner, seedDemo }: Pick<Config, "allowsDemoOwner" | "seedDemo">,
  catalog: Pick<Catalog, "list">,
): boolean {
  const isSandbox = () => catalog.list().every(({ upstreams }) => upstreams.every(({ kind }) => kind === "sandbox"));
  return allowsDemoOwner && seedDemo && isSandbox();
}

type AnnounceOptions = {
  readonly config: Config;
  readonly deps: Pick<Deps, "database" | "ids" | "generateKey" | "catalog">;
  readonly url: string;
  readonly print: (text: string, fields: Readonly<Record<string, string>>) => void;
};

/** Creates the demo account on an empty database, and prints its key. */
export async function announceDemo({ config, deps, url, print }: AnnounceOptions): Promise<void> {
  const secret = await seedDemo(deps, config.databaseUrl === undefined);
  if (secret === undefined) return;
  const hasOwner = isDemoOwnerOffered(config, deps.catalog);
  print(demoText(secret, url, deps.catalog.list(), hasOwner), { demo_key: secret });
}

function demoText(secret: string, baseUrl: string, models: readonly Model[], hasOwner: boolean): string {
  const { id: model } = exampleModels(models).generation.model;
  const page = hasOwner
    ? `\nOpen ${baseUrl}/account and sign in as the demo owner to see members, payments and the playground.\n`
    : "";
  return `
Created the account "demo" with a balance of ${formatMicros(BALANCE_MICROS)} and this key, which is shown only once:

    ${secret}

Try it:

    curl ${baseUrl}/v1/me -H 'Authorization: Bearer ${secret}'

    curl ${baseUrl}/v1/generate -H 'Authorization: Bearer ${secret}' \\
      -H 'content-type: application/json' \\
      -d '{"model": "${model}", "messages": [{"role": "user", "content": "What is a ledger?"}]}'
${page}`;
}
