import { once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { FoundKeySchema, ReportLeakResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { type ApiKey, ApiKeySchema } from "../../gen/vx/v1/key_pb.js";
import { fingerprintOf, isWellFormedKey } from "../domain/credentials.ts";
import { maskedIfFull } from "../domain/key-query.ts";
import { call, list } from "./call.ts";
import { withAdmin } from "./client.ts";
import { usageFailure } from "./failure.ts";
import { collectLimits, collectLimitsOrNone, LIMIT_TEXT, limitText } from "./limits.ts";
import { printError, visible } from "./output.ts";
import {
  ANY_ACCOUNT,
  argument,
  combined,
  flag,
  JSON_RESPONSE,
  option,
  REASON,
  required,
  unused,
  type Values,
} from "./parameters.ts";
import { columnsOf, printResponse } from "./print.ts";
import { command, noun } from "./row.ts";
import { shell } from "./shell.ts";
import * as parse from "./values.ts";

const IDENTITY = "id, name, maskedKey as KEY, plan, scopes, state";
const DETAILS = `rateLimitRpm as RPM, createdAt, expiresAt, lastUsedAt, models, limits, allowedCidrs as ALLOWED ADDRESSES,
  previousExpiresAt as OLD SECRET UNTIL, revokedAt` as const;
const texts = { limits: (limits: ApiKey["limits"]) => limits.map(limitText).join(" ") };
const columns = columnsOf(ApiKeySchema, `${IDENTITY}, ${DETAILS}` as const, {}, texts);
const foundColumns = columnsOf(FoundKeySchema, `${IDENTITY}, accountId, accountName, ${DETAILS}` as const, {}, texts);

/** The output of a command that returns the secret of a key. */
const secret = (done: string) => ({
  note: () => "The full key is shown only once. Store it now.",
  lost: ({ apiKey }: { readonly apiKey?: ApiKey | undefined }) =>
    `the key ${visible(apiKey?.id ?? "")} ${done}, but the secret could not be printed: revoke it`,
});

const RANGE = "an address or range from which the key may be used";
const SCOPES = "generate, read, keys, webhooks or billing";
const OTHERS_END = "can be repeated, and the others are removed";
const OF_KEY = { reason: REASON, keyId: argument("<key_id>", "the id of the key") };
const OF_ACCOUNT = { accountId: ANY_ACCOUNT };
const limit = {
  rpm: option("--rpm <n>", "requests per minute of the key (this or --default is required)", parse.rpm),
  isDefault: flag("--default", "restore the limit of the plan", ["rpm"]),
};

export const row = noun(["create --account acct_… --name ci", "search vx_live_abcd", "revoke key_…"], {
  create: call("createKey", columns, {
    about: "Create a key. The full key is shown only once.",
    fields: {
      accountId: ANY_ACCOUNT,
      name: required("--name <name>", "the name of the key"),
      plan: option("--plan <plan>", "the plan of the key (default: the plan of the account)"),
      scopes: option("--scope <scope>", `${SCOPES}; can be repeated (default: generate and read)`, parse.collect),
      rateLimitRpm: option("--rpm <n>", "requests per minute of the key (default: the limit of the plan)", parse.rpm),
      models: option("--model <model>", "a model that the key may use; can be repeated (default: all)", parse.collect),
      expiresAt: option("--expires-at <time>", "the time at which the key expires (default: never)", parse.time),
      limits: option("--limit <limit>", `${LIMIT_TEXT}; can be repeated`, collectLimits),
      allowedCidrs: option("--cidr <range>", `${RANGE}, such as 203.0.113.0/24; can be repeated (default: all)`, parse.collect),
      reason: REASON,
    },
    ...secret("was created"),
    examples: [
      "--account acct_… --name ci --scope generate --scope read",
      "--account acct_… --name trial --plan free --expires-at 2030-01-31",
      "--account acct_… --name agent --limit cost/day=5.00 --limit concurrent=4",
    ],
  }),
  list: list("listKeys", columns, {
    about: "List the keys of an account, newest first.",
    none: "The account has no keys.",
    fields: OF_ACCOUNT,
    examples: ["--account acct_…"],
  }),
  search: list("searchKeys", foundColumns, {
    about: "Find keys of all accounts by id, by masked key, by first characters, or by a part of their name.",
    none: "No key matches.",
    fields: {
      query: argument("<text>", "the text; a full key is masked before it is sent", maskedIfFull),
      unusedDays: unused("the console lists unused keys"),
    },
    examples: ["key_…", "vx_live_abcd…wxyz", "ci"],
  }),
  revoke: call("revokeKey", columns, { about: "Revoke a key immediately and permanently.", fields: OF_KEY, examples: ["key_…"] }),
  "report-leak": command({
    about: "Revoke a key that became public and all keys that it created. The key is read from the input and not sent.",
    parameters: { json: JSON_RESPONSE, reason: REASON, url: option("--url <url>", "where the key was found") },
    examples: ["--url https://paste.example/abc < leaked-key.txt"],
    run: async ({ json, url = "", reason = "" }) => {
      const key = await readKey();
      const report = { fingerprint: fingerprintOf(key), keyStart: key.slice(0, 14), url, reason };
      const response = await withAdmin((admin) => admin.reportLeak(report));
      const { keyId, accountId, revokedKeys } = response;
      const keys = `${revokedKeys} ${revokedKeys === 1 ? "key" : "keys"}`;
      const text = visible(`Revoked ${keys}: ${keyId} of ${accountId} and those that it created.`);
      await printResponse(json, ReportLeakResponseSchema, response, () => `${text}\n`);
    },
  }),
  update: call("updateKey", columns, {
    about: "Change the name, scopes, limits, models or expiry of a key.",
    fields: {
      ...OF_KEY,
      name: option("--name <name>", "the new name"),
      models: option("--model <model>", "a model that the key may use, or all; can be repeated", parse.collectOrAll),
      scopes: option("--scope <scope>", `a scope to keep; ${OTHERS_END}`, parse.collect),
      rateLimitRpm: option("--rpm <n>", "requests per minute of the key, or default: the limit of the plan", parse.rpmOrDefault),
      expiresAt: option("--expires-at <time>", "the time at which the key expires, or never", parse.timeOrNever),
      limits: option("--limit <limit>", `${LIMIT_TEXT}, or none; ${OTHERS_END}`, collectLimitsOrNone),
      allowedCidrs: option("--cidr <range>", `${RANGE}, or all; ${OTHERS_END}`, parse.collectOrAll),
    },
    needsOption: true,
    examples: ["key_… --name ci-2", "key_… --scope read --expires-at never"],
  }),
  rotate: call("rotateKey", columns, {
    about: "Give a key a new secret, which is shown only once. Its id stays.",
    fields: {
      ...OF_KEY,
      overlapSeconds: option(
        "--overlap-seconds <n>",
        "how long the present secret still works (default: it ends at once)",
        parse.overlapSeconds,
      ),
    },
    ...secret("has a new secret"),
    examples: ["key_… --overlap-seconds 86400"],
  }),
  "set-limit": call("setKeyLimit", columns, {
    about: "Set the limit of a key, or restore the limit of its plan.",
    fields: { ...OF_KEY, rateLimitRpm: combined(limit, limitOf) },
    examples: ["key_… --rpm 30", "key_… --default"],
  }),
});

function limitOf({ rpm, isDefault }: Values<typeof limit>): number | undefined {
  if (rpm === undefined && !isDefault) throw usageFailure("the limit is missing; add --rpm N or --default");
  return rpm;
}

/** The first line of the input: arguments of commands are visible to other users and stored in histories. */
async function readKey(): Promise<string> {
  const { isTTY: terminal = false } = shell.stdin;
  // On a terminal, the interface reads key by key and would echo them to its output.
  const lines = createInterface({ input: shell.stdin, output: new PassThrough().resume(), terminal });
  if (terminal) await printError("Paste the leaked key and press Enter. It is not shown:");
  const first = await Promise.race([once(lines, "line"), once(lines, "close")]);
  lines.close();
  const key = String(first[0] ?? "").trim();
  if (isWellFormedKey(key)) return key;
  throw usageFailure("the first line of the input is not a complete key: vx_live_ and 32 letters or digits");
}
