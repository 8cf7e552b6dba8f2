import { once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import type { LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import { fingerprintOf, isWellFormedKey } from "../domain/credentials.ts";
import { maskedIfFull } from "../domain/key-query.ts";
import { ACCOUNT_OPTION, accountOf, collect, MAX_RPM, orWord, positiveNumber, time } from "./arguments.ts";
import { callAndShow, callAndShowSecret } from "./client.ts";
import { foundKeyColumns, keyColumns } from "./columns.ts";
import {
  callCommand,
  type Define,
  type JsonOption,
  type ReasonOption,
  reasonOption,
  requiredOption,
  withExamples,
} from "./command.ts";
import { usageFailure } from "./failure.ts";
import { limitAmount } from "./limits.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { printError, visible } from "./output.ts";
import { tableOf } from "./print.ts";
import { shell } from "./shell.ts";

type LimitInit = MessageInitShape<typeof LimitSchema>;
type AccountOption = { readonly account?: string };
type CreateOptions = JsonOption &
  ReasonOption &
  AccountOption & {
    name: string;
    plan?: string;
    scope?: string[];
    model?: string[];
    rpm?: number;
    expiresAt?: Date;
    limit?: LimitInit[];
    cidr?: string[];
  };

export const define: Define = (group) => {
  withExamples(group, ["vx keys create --account acct_… --name ci", "vx keys search vx_live_abcd", "vx keys revoke key_…"]);
  const create = withAccount(
    callCommand(group, "create", "Create a key. The full key is shown only once.", [
      "vx keys create --account acct_… --name ci --scope generate --scope read",
      "vx keys create --account acct_… --name trial --plan free --expires-at 2030-01-31",
      "vx keys create --account acct_… --name agent --limit cost/day=5.00 --limit concurrent=4",
    ]),
  );
  requiredOption(create, "--name <name>", "the name of the key")
    .option("--plan <plan>", "the plan of the key (default: the plan of the account)")
    .option("--scope <scope>", "generate, read, keys, webhooks or billing; can be repeated (default: generate and read)", collect)
    .option("--rpm <n>", "requests per minute of the key (default: the limit of the plan)", positiveNumber("--rpm", MAX_RPM))
    .option("--model <model>", "a model that the key may use; can be repeated (default: all)", collect)
    .option("--expires-at <time>", "the time at which the key expires (default: never)", time("--expires-at"))
    .option("--limit <limit>", `${LIMIT}; can be repeated`, collectLimits)
    .option(
      "--cidr <range>",
      "an address or range from which the key may be used, such as 203.0.113.0/24; can be repeated (default: all)",
      collect,
    )
    .action(createKey);
  reasonOption(create);
  const listing = callCommand(group, "list", "List the keys of an account, newest first.", ["vx keys list --account acct_…"]);
  addListOptions(withAccount(listing)).action(list);
  addListOptions(
    callCommand(
      group,
      "search",
      "Find keys of all accounts by id, by masked key, by first characters, or by a part of their name.",
      ["vx keys search key_…", "vx keys search vx_live_abcd…wxyz", "vx keys search ci"],
    ).argument("<text>", "the text; a full key is masked before it is sent"),
  ).action(search);
  reasonOption(callCommand(group, "revoke", "Revoke a key immediately and permanently.", ["vx keys revoke key_…"]))
    .argument("<key_id>", "the id of the key")
    .action(revoke);
  defineReportLeak(group);
  defineUpdate(group);
  defineRotate(group);
  reasonOption(
    callCommand(group, "set-limit", "Set the limit of a key, or restore the limit of its plan.", [
      "vx keys set-limit key_… --rpm 30",
      "vx keys set-limit key_… --default",
    ]),
  )
    .argument("<key_id>", "the id of the key")
    .option("--rpm <n>", "requests per minute of the key (this or --default is required)", positiveNumber("--rpm", MAX_RPM))
    .addOption(new Option("--default", "restore the limit of the plan").conflicts("rpm"))
    .action(setLimit);
};

function defineReportLeak(group: Command): void {
  reasonOption(
    callCommand(
      group,
      "report-leak",
      "Revoke a key that became public and all keys that it created. The key is read from the input and not sent.",
      ["vx keys report-leak --url https://paste.example/abc < leaked-key.txt"],
    ),
  )
    .option("--url <url>", "where the key was found")
    .action(reportLeak);
}

function defineUpdate(group: Command): void {
  const update = callCommand(group, "update", "Change the name, scopes, limits, models or expiry of a key.", [
    "vx keys update key_… --name ci-2",
    "vx keys update key_… --scope read --expires-at never",
  ]);
  reasonOption(update)
    .argument("<key_id>", "the id of the key")
    .option("--name <name>", "the new name")
    .option("--model <model>", "a model that the key may use, or all; can be repeated", collect)
    .option("--scope <scope>", "a scope to keep; can be repeated, and the others are removed", collect)
    .option(
      "--rpm <n>",
      "requests per minute of the key, or default: the limit of the plan",
      orWord("default", positiveNumber("--rpm", MAX_RPM)),
    )
    .option("--expires-at <time>", "the time at which the key expires, or never", orWord("never", time("--expires-at")))
    .option("--limit <limit>", `${LIMIT}, or none; can be repeated, and the others are removed`, orNone)
    .option(
      "--cidr <range>",
      "an address or range from which the key may be used, or all; can be repeated, and the others are removed",
      collect,
    )
    .action(updateKey);
}

function defineRotate(group: Command): void {
  const rotate = callCommand(group, "rotate", "Give a key a new secret, which is shown only once. Its id stays.", [
    "vx keys rotate key_… --overlap-seconds 86400",
  ]);
  reasonOption(rotate)
    .argument("<key_id>", "the id of the key")
    .option(
      "--overlap-seconds <n>",
      "how long the present secret still works (default: it ends at once)",
      positiveNumber("--overlap-seconds", MAX_OVERLAP_SECONDS),
    )
    .action(rotateKey);
}

const LIMIT = "a limit such as cost/month=25.00, tokens/minute=5000,model=small,per=user or concurrent=4";

/** "metric/window=amount", with ",model=M" and ",per=user". */
function collectLimits(text: string, before: readonly LimitInit[] = []): LimitInit[] {
  const match = /^([a-z_]+)(?:\/([a-z]+))?=([^,]+)((?:,(?:model=[^,]+|per=user))*)$/.exec(text);
  if (!match) throw usageFailure(`--limit: must be ${LIMIT}, not ${JSON.stringify(text)}`);
  const [, metric = "", window = "", amount = "", rest = ""] = match;
  const model = /,model=([^,]+)/.exec(rest)?.[1] ?? "";
  const per = rest.includes(",per=user") ? "user" : "";
  return [...before, { metric, window, amount: limitAmount("--limit", metric, amount), model, per }];
}

/** The word "none" stands for no limits. */
function orNone(text: string, before?: LimitInit[]): LimitInit[] {
  return text === "none" ? [] : collectLimits(text, before);
}

function withAccount(command: Command): Command {
  return command.argument("[account]", "the same as --account").option("--account <account>", ACCOUNT_OPTION);
}

async function createKey(argument: string | undefined, options: CreateOptions): Promise<void> {
  const { name, plan = "", scope: scopes = [], model: models = [], rpm, expiresAt, reason = "" } = options;
  const { limit: limits = [], cidr: allowedCidrs = [] } = options;
  const request = {
    accountId: accountOf(argument, options.account),
    name,
    plan,
    scopes,
    models,
    limits,
    allowedCidrs,
    reason,
    ...(rpm === undefined ? {} : { rateLimitRpm: rpm }),
    ...(expiresAt === undefined ? {} : { expiresAt: timestampFromDate(expiresAt) }),
  };
  await callAndShowSecret(options, "createKey", request, secretTexts("was created"));
}

function secretTexts(done: string) {
  return ({ apiKey }: { readonly apiKey?: ApiKey | undefined }) => ({
    table: tableOf(keyColumns, apiKey),
    lost: `the key ${visible(apiKey?.id ?? "")} ${done}, but the secret could not be printed: revoke it`,
    note: "The full key is shown only once. Store it now.",
  });
}

async function list(argument: string | undefined, options: ListOptions & AccountOption): Promise<void> {
  const accountId = accountOf(argument, options.account);
  await callAndPrintList(options, "listKeys", {
    request: { accountId },
    rows: (page) => page.apiKeys,
    columns: keyColumns,
    none: "The account has no keys.",
  });
}

async function search(text: string, options: ListOptions): Promise<void> {
  await callAndPrintList(options, "searchKeys", {
    request: { query: maskedIfFull(text) },
    rows: (page) => page.keys,
    columns: foundKeyColumns,
    none: "No key matches.",
  });
}

async function revoke(keyId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "revokeKey", { keyId, reason }, keyTable);
}

async function reportLeak(options: JsonOption & ReasonOption & { url?: string }): Promise<void> {
  const { url = "", reason = "" } = options;
  const key = await readKey();
  const report = { fingerprint: fingerprintOf(key), keyStart: key.slice(0, 14), url, reason };
  await callAndShow(options, "reportLeak", report, ({ keyId, accountId, revokedKeys }) => {
    const keys = revokedKeys === 1 ? "key" : "keys";
    return `${visible(`Revoked ${revokedKeys} ${keys}: ${keyId} of ${accountId} and those that it created.`)}\n`;
  });
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

type UpdateOptions = JsonOption &
  ReasonOption & {
    name?: string;
    scope?: string[];
    model?: string[];
    rpm?: number | "default";
    expiresAt?: Date | "never";
    limit?: LimitInit[];
    cidr?: string[];
  };

async function updateKey(keyId: string, options: UpdateOptions): Promise<void> {
  const { name, scope, model, rpm, expiresAt, limit, cidr, reason = "" } = options;
  const given = {
    name,
    scopes: scope,
    models: model,
    limits: limit,
    allowed_cidrs: cidr,
    rate_limit_rpm: rpm,
    expires_at: expiresAt,
  };
  const paths = Object.entries(given).flatMap(([path, value]) => (value === undefined ? [] : [path]));
  if (paths.length === 0)
    throw usageFailure("nothing to change; add --name, --scope, --model, --rpm, --expires-at, --limit or --cidr");
  const request = {
    keyId,
    reason,
    name: name ?? "",
    scopes: scope ?? [],
    models: model?.includes("all") ? [] : (model ?? []),
    limits: limit ?? [],
    allowedCidrs: cidr?.includes("all") ? [] : (cidr ?? []),
    ...(typeof rpm === "number" ? { rateLimitRpm: rpm } : {}),
    ...(expiresAt instanceof Date ? { expiresAt: timestampFromDate(expiresAt) } : {}),
    updateMask: { paths },
  };
  await callAndShow(options, "updateKey", request, keyTable);
}

/** 30 days. */
const MAX_OVERLAP_SECONDS = 2_592_000;

async function rotateKey(keyId: string, options: JsonOption & ReasonOption & { overlapSeconds?: number }): Promise<void> {
  const { overlapSeconds = 0, reason = "" } = options;
  const request = { keyId, overlapSeconds, reason };
  await callAndShowSecret(options, "rotateKey", request, secretTexts("has a new secret"));
}

async function setLimit(keyId: string, options: JsonOption & ReasonOption & { rpm?: number; default?: true }): Promise<void> {
  const { rpm, reason = "" } = options;
  if (rpm === undefined && !options.default) throw usageFailure("the limit is missing; add --rpm N or --default");
  const request = { keyId, reason, ...(rpm === undefined ? {} : { rateLimitRpm: rpm }) };
  await callAndShow(options, "setKeyLimit", request, keyTable);
}

function keyTable({ apiKey }: { readonly apiKey?: ApiKey | undefined }): string {
  return tableOf(keyColumns, apiKey);
}
