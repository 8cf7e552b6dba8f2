import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import type { Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { ACCOUNT, collect, positiveNumber, time } from "./arguments.ts";
import { callAndShow, callAndShowSecret } from "./client.ts";
import { deliveryColumns, webhookColumns } from "./columns.ts";
import {
  callCommand,
  type Define,
  type JsonOption,
  type ReasonOption,
  reasonOption,
  requiredOption,
  withExamples,
} from "./command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { visible } from "./output.ts";
import { formatTable, tableOf } from "./print.ts";

type AccountOption = { readonly account?: string };
type Fields = { readonly type?: string[]; readonly description?: string };

export const define: Define = (group) => {
  withExamples(group, [
    "vx webhooks create --url https://hooks.example.com/vx --type balance.depleted --reason 'new dashboard'",
    "vx webhooks deliveries wh_… --state failed",
    "vx webhooks redeliver wh_… --from 2030-01-31 --reason 'outage of the receiver'",
  ]);
  const create = callCommand(
    group,
    "create",
    "Create a webhook for the events of an account, or of all accounts. Its secret is shown only once.",
    ["vx webhooks create --account acct_… --url https://hooks.example.com/vx --reason 'ticket 4711'"],
  );
  fieldOptions(accountOption(requiredOption(create, "--url <url>", "the address that receives the events"))).action(
    createWebhook,
  );
  reasonOption(create, { isRequired: true });
  accountOption(
    callCommand(group, "list", "List the webhooks of an account, or those for all accounts.", [
      "vx webhooks list --account acme",
    ]),
  ).action(list);
  const update = ofWebhook(group, "update", "Change, pause or enable a webhook.", [
    "vx webhooks update wh_… --state paused --reason 'maintenance'",
    "vx webhooks update wh_… --type all --reason 'ticket 4711'",
  ]);
  fieldOptions(update.option("--url <url>", "the new address"))
    .addOption(new Option("--state <state>", "the new state").choices(["enabled", "paused"]))
    .action(updateWebhook);
  reasonOption(update, { isRequired: true });
  reasonOption(ofWebhook(group, "delete", "Delete a webhook.", ["vx webhooks delete wh_… --reason 'ticket 4711'"]), {
    isRequired: true,
  }).action(deleteWebhook);
  reasonOption(
    ofWebhook(group, "rotate", "Give a webhook a new secret, which is shown only once.", [
      "vx webhooks rotate wh_… --overlap-seconds 86400 --reason 'ticket 4711'",
    ]).option(
      "--overlap-seconds <n>",
      "how long deliveries are also signed with the present secret (default: not at all)",
      positiveNumber("--overlap-seconds", MAX_OVERLAP_SECONDS),
    ),
    { isRequired: true },
  ).action(rotate);
  reasonOption(
    ofWebhook(group, "test", "Send a delivery now and show the outcome. Exits with 1 if it is not accepted.", [
      "vx webhooks test wh_…",
    ]),
  ).action(testWebhook);
  defineDeliveries(group);
};

function defineDeliveries(group: Command): void {
  addListOptions(
    ofWebhook(group, "deliveries", "List the events that a webhook receives, the newest first.", [
      "vx webhooks deliveries wh_… --state failed",
    ]),
  )
    .addOption(new Option("--state <state>", "only deliveries in this state").choices(["pending", "delivered", "failed"]))
    .action(deliveries);
  reasonOption(
    ofWebhook(group, "redeliver", "Deliver one event again, or the events of a time that did not arrive.", [
      "vx webhooks redeliver wh_… --event evt_… --reason 'ticket 4711'",
      "vx webhooks redeliver wh_… --from 2030-01-31T08:00:00Z --to 2030-01-31T12:00:00Z --reason 'outage of the receiver'",
    ]),
    { isRequired: true },
  )
    .option("--event <event_id>", "the event (this or --from is required)")
    .option("--from <time>", "the time of the first event", time("--from"))
    .option("--to <time>", "the time before which the last event is (default: now)", time("--to"))
    .action(redeliver);
}

const MAX_OVERLAP_SECONDS = 2_592_000;

function accountOption(command: Command): Command {
  return command.option("--account <account>", `${ACCOUNT} (default: all accounts)`);
}

function fieldOptions(command: Command): Command {
  return command
    .option("--type <type>", "a type of event, or all; can be repeated (default: all)", collect)
    .option("--description <text>", "what the endpoint is for");
}

function ofWebhook(group: Command, name: string, description: string, examples: readonly string[]): Command {
  return callCommand(group, name, description, examples).argument("<webhook_id>", "the id of the webhook");
}

function typesOf(types: readonly string[]): string[] {
  return types.filter((type) => type !== "all");
}

type CreateOptions = JsonOption & ReasonOption & AccountOption & Fields & { readonly url: string };

async function createWebhook(options: CreateOptions): Promise<void> {
  const { account: accountId = "", url, type = [], description = "", reason = "" } = options;
  const request = { accountId, url, types: typesOf(type), description, reason };
  await callAndShowSecret(options, "createWebhook", request, secretTexts("was created"));
}

async function list(options: JsonOption & AccountOption): Promise<void> {
  await callAndShow(options, "listWebhooks", { accountId: options.account ?? "" }, ({ webhooks }) =>
    webhooks.length === 0 ? "There are no webhooks.\n" : formatTable(webhookColumns, webhooks),
  );
}

type UpdateOptions = JsonOption & ReasonOption & Fields & { readonly url?: string; readonly state?: string };

async function updateWebhook(webhookId: string, options: UpdateOptions): Promise<void> {
  const { url, type, description, state, reason = "" } = options;
  const given = { url, types: type && typesOf(type), description, state };
  const paths = Object.entries(given).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (paths.length === 0) throw usageFailure("nothing to change; add --url, --type, --description or --state");
  const request = {
    webhookId,
    url: url ?? "",
    types: given.types ?? [],
    description: description ?? "",
    state: state ?? "",
    reason,
    updateMask: { paths },
  };
  await callAndShow(options, "updateWebhook", request, ({ webhook }) => tableOf(webhookColumns, webhook));
}

async function deleteWebhook(webhookId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  const done = `The webhook ${visible(webhookId)} was deleted.\n`;
  await callAndShow(options, "deleteWebhook", { webhookId, reason }, () => done);
}

type RotateOptions = JsonOption & ReasonOption & { readonly overlapSeconds?: number };

async function rotate(webhookId: string, options: RotateOptions): Promise<void> {
  const { overlapSeconds = 0, reason = "" } = options;
  const request = { webhookId, overlapSeconds, reason };
  await callAndShowSecret(options, "rotateWebhook", request, secretTexts("has a new secret"));
}

async function testWebhook(webhookId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  const response = await callAndShow(options, "testWebhook", { webhookId, reason }, ({ outcome }) => {
    const { status = 0, latencyMs = 0, error = "", answer = "" } = outcome ?? {};
    const result = error === "" ? `The endpoint accepted the test: ${status}` : visible(error);
    return `${[result, `${latencyMs} ms`, ...(answer === "" ? [] : [visible(answer)])].join("\n")}\n`;
  });
  if (response.outcome?.error) throw new CommandFailure("the endpoint did not accept the test");
}

async function deliveries(webhookId: string, options: ListOptions & { readonly state?: string }): Promise<void> {
  await callAndPrintList(options, "listDeliveries", {
    request: { webhookId, state: options.state ?? "" },
    rows: (page) => page.deliveries,
    columns: deliveryColumns,
    none: "There are no such deliveries.",
  });
}

type RedeliverOptions = JsonOption & ReasonOption & { readonly event?: string; readonly from?: Date; readonly to?: Date };

async function redeliver(webhookId: string, options: RedeliverOptions): Promise<void> {
  const { event, from, to, reason = "" } = options;
  if ((event === undefined) === (from === undefined))
    throw usageFailure("add either --event or --from; only one of them can be used");
  const request = {
    webhookId,
    eventId: event ?? "",
    reason,
    ...(from ? { from: timestampFromDate(from) } : {}),
    ...(to ? { to: timestampFromDate(to) } : {}),
  };
  await callAndShow(options, "redeliver", request, ({ events, hasMore }) => {
    const more = hasMore ? " There are more: repeat the command." : "";
    return `${events} events are delivered again.${more}\n`;
  });
}

function secretTexts(done: string) {
  return ({ webhook }: { readonly webhook?: Webhook | undefined }) => ({
    table: tableOf(webhookColumns, webhook),
    lost: `the webhook ${visible(webhook?.id ?? "")} ${done}, but the secret could not be printed: rotate it`,
    note: "The secret is shown only once. Store it now.",
  });
}
