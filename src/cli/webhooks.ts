import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import {
  CreateWebhookResponseSchema,
  DeleteWebhookResponseSchema,
  ListDeliveriesResponseSchema,
  ListWebhooksResponseSchema,
  RedeliverResponseSchema,
  RotateWebhookResponseSchema,
  TestWebhookResponseSchema,
  UpdateWebhookResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { accountIdOf, collect, positiveNumber, time } from "./arguments.ts";
import { type Admin, withAdmin } from "./client.ts";
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
import { addListOptions, type ListOptions, printList } from "./list.ts";
import { printError, visible } from "./output.ts";
import { formatTable, show } from "./print.ts";

type AccountOption = { readonly account?: string };
type Fields = { readonly type?: string[]; readonly description?: string };

export const define: Define = (group) => {
  withExamples(group, [
    "vx webhooks create --url https://hooks.example.com/vx --type balance.depleted",
    "vx webhooks deliveries wh_… --state failed",
    "vx webhooks redeliver wh_… --from 2030-01-31",
  ]);
  const create = callCommand(
    group,
    "create",
    "Create a webhook for the events of an account, or of all accounts. Its secret is shown only once.",
    ["vx webhooks create --account acme --url https://hooks.example.com/vx"],
  );
  fieldOptions(
    accountOption(requiredOption(create, "--url <url>", "the address that receives the events")),
  ).action(createWebhook);
  reasonOption(create);
  accountOption(
    callCommand(group, "list", "List the webhooks of an account, or those for all accounts.", [
      "vx webhooks list --account acme",
    ]),
  ).action(list);
  const update = ofWebhook(group, "update", "Change, pause or enable a webhook.", [
    "vx webhooks update wh_… --state paused",
    "vx webhooks update wh_… --type all",
  ]);
  fieldOptions(update.option("--url <url>", "the new address"))
    .addOption(new Option("--state <state>", "the new state").choices(["enabled", "paused"]))
    .action(updateWebhook);
  reasonOption(update);
  reasonOption(ofWebhook(group, "delete", "Delete a webhook.", ["vx webhooks delete wh_…"])).action(
    deleteWebhook,
  );
  reasonOption(
    ofWebhook(group, "rotate", "Give a webhook a new secret, which is shown only once.", [
      "vx webhooks rotate wh_… --overlap-seconds 86400",
    ]).option(
      "--overlap-seconds <n>",
      "how long deliveries are also signed with the present secret (default: not at all)",
      positiveNumber("--overlap-seconds", MAX_OVERLAP_SECONDS),
    ),
  ).action(rotate);
  reasonOption(
    ofWebhook(
      group,
      "test",
      "Send a delivery now and show the outcome. Exits with 1 if it is not accepted.",
      ["vx webhooks test wh_…"],
    ),
  ).action(testWebhook);
  defineDeliveries(group);
};

function defineDeliveries(group: Command): void {
  addListOptions(
    ofWebhook(group, "deliveries", "List the events that a webhook receives, the newest first.", [
      "vx webhooks deliveries wh_… --state failed",
    ]),
  )
    .addOption(
      new Option("--state <state>", "only deliveries in this state").choices([
        "pending",
        "delivered",
        "failed",
      ]),
    )
    .action(deliveries);
  reasonOption(
    ofWebhook(group, "redeliver", "Deliver one event again, or the events of a time that did not arrive.", [
      "vx webhooks redeliver wh_… --event evt_…",
      "vx webhooks redeliver wh_… --from 2030-01-31T08:00:00Z --to 2030-01-31T12:00:00Z",
    ]),
  )
    .option("--event <event_id>", "the event (this or --from is required)")
    .option("--from <time>", "the time of the first event", time("--from"))
    .option("--to <time>", "the time before which the last event is (default: now)", time("--to"))
    .action(redeliver);
}

const MAX_OVERLAP_SECONDS = 2_592_000;

function accountOption(command: Command): Command {
  return command.option(
    "--account <account>",
    "the id, external id or unique name of the account (default: all accounts)",
  );
}

function fieldOptions(command: Command): Command {
  return command
    .option("--type <type>", "a type of event, or all; can be repeated (default: all)", collect)
    .option("--description <text>", "what the endpoint is for");
}

function ofWebhook(group: Command, name: string, description: string, examples: readonly string[]): Command {
  return callCommand(group, name, description, examples).argument("<webhook_id>", "the id of the webhook");
}

async function idOf(admin: Admin, { account }: AccountOption): Promise<string> {
  return account === undefined ? "" : await accountIdOf(admin, account);
}

function typesOf(types: readonly string[]): string[] {
  return types.filter((type) => type !== "all");
}

type CreateOptions = JsonOption & ReasonOption & AccountOption & Fields & { readonly url: string };

async function createWebhook(options: CreateOptions): Promise<void> {
  const { url, type = [], description = "", reason = "" } = options;
  const response = await withAdmin(async (admin) =>
    admin.createWebhook({
      accountId: await idOf(admin, options),
      url,
      types: typesOf(type),
      description,
      reason,
    }),
  );
  await showSecret(options, CreateWebhookResponseSchema, response, "was created");
}

async function list(options: JsonOption & AccountOption): Promise<void> {
  const response = await withAdmin(async (admin) =>
    admin.listWebhooks({ accountId: await idOf(admin, options) }),
  );
  await show(options, ListWebhooksResponseSchema, response, () =>
    response.webhooks.length === 0
      ? "There are no webhooks.\n"
      : formatTable(webhookColumns, response.webhooks),
  );
}

type UpdateOptions = JsonOption & ReasonOption & Fields & { readonly url?: string; readonly state?: string };

async function updateWebhook(webhookId: string, options: UpdateOptions): Promise<void> {
  const { url, type, description, state, reason = "" } = options;
  const given = { url, types: type && typesOf(type), description, state };
  const paths = Object.entries(given).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (paths.length === 0)
    throw usageFailure("nothing to change; add --url, --type, --description or --state");
  const response = await withAdmin((admin) =>
    admin.updateWebhook({
      webhookId,
      url: url ?? "",
      types: given.types ?? [],
      description: description ?? "",
      state: state ?? "",
      reason,
      updateMask: { paths },
    }),
  );
  await show(options, UpdateWebhookResponseSchema, response, () => tableOf(response.webhook));
}

async function deleteWebhook(webhookId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  const response = await withAdmin((admin) => admin.deleteWebhook({ webhookId, reason }));
  await show(
    options,
    DeleteWebhookResponseSchema,
    response,
    () => `The webhook ${visible(webhookId)} was deleted.\n`,
  );
}

type RotateOptions = JsonOption & ReasonOption & { readonly overlapSeconds?: number };

async function rotate(webhookId: string, options: RotateOptions): Promise<void> {
  const { overlapSeconds = 0, reason = "" } = options;
  const response = await withAdmin((admin) => admin.rotateWebhook({ webhookId, overlapSeconds, reason }));
  await showSecret(options, RotateWebhookResponseSchema, response, "has a new secret");
}

async function testWebhook(webhookId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  const response = await withAdmin((admin) => admin.testWebhook({ webhookId, reason }));
  const { status = 0, latencyMs = 0, error = "", answer = "" } = response.outcome ?? {};
  await show(options, TestWebhookResponseSchema, response, () =>
    [
      error === "" ? `The endpoint accepted the test: ${status}` : visible(error),
      `${latencyMs} ms`,
      ...(answer === "" ? [] : [visible(answer)]),
      "",
    ].join("\n"),
  );
  if (error !== "") throw new CommandFailure("the endpoint did not accept the test");
}

async function deliveries(
  webhookId: string,
  options: ListOptions & { readonly state?: string },
): Promise<void> {
  await withAdmin((admin) =>
    printList(options, {
      desc: ListDeliveriesResponseSchema,
      fetch: (page) => admin.listDeliveries({ webhookId, state: options.state ?? "", ...page }),
      rows: (page) => page.deliveries,
      columns: deliveryColumns,
      none: "There are no such deliveries.",
    }),
  );
}

type RedeliverOptions = JsonOption &
  ReasonOption & { readonly event?: string; readonly from?: Date; readonly to?: Date };

async function redeliver(webhookId: string, options: RedeliverOptions): Promise<void> {
  const { event, from, to, reason = "" } = options;
  if ((event === undefined) === (from === undefined))
    throw usageFailure("add either --event or --from; only one of them can be used");
  const response = await withAdmin((admin) =>
    admin.redeliver({
      webhookId,
      eventId: event ?? "",
      reason,
      ...(from ? { from: timestampFromDate(from) } : {}),
      ...(to ? { to: timestampFromDate(to) } : {}),
    }),
  );
  const more = response.hasMore ? " There are more: repeat the command." : "";
  await show(
    options,
    RedeliverResponseSchema,
    response,
    () => `${response.events} events are delivered again.${more}\n`,
  );
}

async function showSecret<Desc extends DescMessage>(
  options: JsonOption,
  desc: Desc,
  response: MessageShape<Desc> & { readonly webhook?: Webhook | undefined; readonly secret: string },
  done: string,
): Promise<void> {
  const { webhook, secret } = response;
  if (!(await show(options, desc, response, () => `${tableOf(webhook)}\n${visible(secret)}\n`))) {
    throw new CommandFailure(
      `the webhook ${visible(webhook?.id ?? "")} ${done}, but the secret could not be printed: rotate it`,
    );
  }
  if (!options.json) await printError("The secret is shown only once. Store it now.");
}

function tableOf(webhook: Webhook | undefined): string {
  return formatTable(webhookColumns, webhook ? [webhook] : []);
}
