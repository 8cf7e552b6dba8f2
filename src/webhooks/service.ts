import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { type FieldMask, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  CreateWebhookRequest as CreateAnyWebhookRequest,
  ListDeliveriesRequest as ListAllDeliveriesRequest,
  ListWebhooksRequest as ListAllWebhooksRequest,
  RedeliverRequest as RedeliverAnyRequest,
  UpdateWebhookRequest as UpdateAnyWebhookRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import {
  type CreateWebhookRequest,
  DeliverySchema,
  type ListDeliveriesRequest,
  type RedeliverRequest,
  WebhookSchema,
  WebhookService,
} from "../../gen/vx/v1/webhook_pb.js";
import { accountIdToChange, accountIdToRead } from "../accounts/named-account.ts";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import type { Action } from "../database/action.ts";
import { DomainError } from "../domain/errors.ts";
import { LANE_COUNT, laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { checkEventType } from "../events/types.ts";
import { makeLoggedChange, type WithReason } from "../operators/operator-action.ts";
import { dateOf } from "../rules/request-values.ts";
import {
  createWebhook as createRow,
  type DeliveryRow,
  deleteWebhook as deleteRow,
  getWebhook as getRow,
  listDeliveries as listDeliveryRows,
  listWebhooks as listRows,
  type Redelivery,
  redeliver as redeliverRows,
  rotateWebhook as rotateRow,
  updateWebhook as updateRow,
  type WebhookChanges,
  type WebhookRow,
  webhookToTest,
} from "./store.ts";

/** An empty account is that of operators, whose webhooks receive the events of all accounts. The log has no address, which may contain a token. */
async function createWebhook(
  deps: Deps,
  accountId: string,
  request: (CreateWebhookRequest | CreateAnyWebhookRequest) & WithReason,
  call: ApiCall,
) {
  const { description, types, reason } = request;
  return await makeLoggedChange(deps, call, { target: accountId, reason, details: detailsOf(request) }, async (action) => {
    const id = deps.ids.webhook(accountId === "" ? LANE_COUNT : laneOfId(accountId));
    const row = await createRow(deps.database, action, accountId, {
      id,
      url: urlOf(deps, id, request.url),
      types: typesOf(types),
      description,
    });
    return viewWithSecret(row);
  });
}

function detailsOf({ types, description }: CreateWebhookRequest | CreateAnyWebhookRequest) {
  return { types: types.join(","), description };
}

type OfWebhook = WithReason & { readonly webhookId: string };

async function deleteWebhook(deps: Deps, { webhookId, reason }: OfWebhook, call: ApiCall) {
  await makeLoggedChange(deps, call, { target: webhookId, reason }, (action) => deleteRow(deps.database, action, webhookId));
  return {};
}

type RotateRequest = OfWebhook & { readonly overlapSeconds: number };

async function rotateWebhook(deps: Deps, { webhookId, overlapSeconds, reason }: RotateRequest, call: ApiCall) {
  const change = { target: webhookId, reason, details: { overlap_seconds: overlapSeconds } };
  const row = await makeLoggedChange(deps, call, change, (action) => rotateRow(deps.database, action, webhookId, overlapSeconds));
  return viewWithSecret(row);
}

/** Operators see the first characters of the answer. Others would read with it what only the server reaches. */
const MAX_TEST_ANSWER = 200;

async function testWebhook(deps: Deps, { webhookId, reason }: OfWebhook, call: ApiCall) {
  return await makeLoggedChange(deps, call, { target: webhookId, reason }, async (action) => {
    const webhook = await webhookToTest(deps.database, action, webhookId);
    const { status = 0, latencyMs, error, answer } = await deps.deliverer.test(webhookId, webhook, call.requestId);
    const maxAnswer = action.actor.accountId === undefined ? MAX_TEST_ANSWER : 0;
    return { outcome: { status, latencyMs, error, answer: [...answer].slice(0, maxAnswer).join("") } };
  });
}

async function listDeliveries(deps: Deps, accountId: string, request: ListDeliveriesRequest | ListAllDeliveriesRequest) {
  const { webhookId: id, state } = request;
  await getRow(deps.database, accountId, id);
  const page = readPage("deliveries", request, [id, state]);
  const { rows, nextPageToken } = await listDeliveryRows(deps.database, id, state, page);
  return { deliveries: rows.map(viewDelivery), nextPageToken };
}

async function redeliver(deps: Deps, action: Action, request: RedeliverRequest | RedeliverAnyRequest) {
  const webhook = await getRow(deps.database, action.actor.accountId ?? "", request.webhookId);
  if (webhook.state === "disabled") throw new DomainError("webhook_disabled");
  return await redeliverRows(deps.database, action, webhook, redeliveryOf(request));
}

function redeliveryOf(request: RedeliverRequest | RedeliverAnyRequest): Redelivery {
  const { eventId } = request;
  const from = dateOf("from", request.from);
  const to = dateOf("to", request.to);
  if (eventId === "") return { from, to };
  if (from || to) throw DomainError.ofField("event_id", "must not be set together with from or to");
  if (!/^evt_[0-9a-z]{26}$/.test(eventId)) throw DomainError.ofField("event_id", 'must be the id of an event: "evt_…"');
  return { eventId };
}

type UpdateRequest = {
  readonly webhookId: string;
  readonly url: string;
  readonly types: readonly string[];
  readonly description: string;
  readonly state: string;
  readonly updateMask?: FieldMask | undefined;
};

/** The value of each field that can change, and whether it is set. */
const FIELDS = {
  url: ({ webhookId, url }, deps) => (url === "" ? undefined : urlOf(deps, webhookId, url)),
  types: ({ types }) => (types.length === 0 ? undefined : typesOf(types)),
  description: ({ description }) => (description === "" ? undefined : description),
  state: ({ state }) => (state === "" ? undefined : (state as "enabled" | "paused")),
} as const satisfies { [Name in keyof WebhookChanges]-?: (request: UpdateRequest, deps: Deps) => unknown };

/** What a field in the mask that is not set becomes. */
const CLEARED: WebhookChanges = { types: [], description: "" };

/** The fields in the mask change; without a mask, those that are set. */
function changesOf(deps: Deps, request: UpdateRequest): WebhookChanges {
  const named = request.updateMask?.paths;
  const names = Object.keys(FIELDS) as (keyof WebhookChanges)[];
  if (named?.some((path) => !(names as string[]).includes(path)))
    throw DomainError.ofField("update_mask", `must have only these fields: ${names.join(", ")}`);
  const changes = names.flatMap((name) => {
    if (named && !named.includes(name)) return [];
    const value = FIELDS[name](request, deps) ?? (named ? CLEARED[name] : undefined);
    if (named && value === undefined) throw DomainError.ofField(name, "must not be empty");
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(changes);
}

function urlOf({ deliverer }: Deps, webhookId: string, text: string): string {
  const read = deliverer.addressesFor(webhookId).readUrl(text);
  if ("problem" in read) throw DomainError.ofField("url", read.problem);
  return read.url;
}

function typesOf(types: readonly string[]): readonly string[] {
  for (const [i, type] of types.entries()) checkEventType(`types[${i}]`, type);
  return types;
}

function viewWebhook(row: WebhookRow): MessageInitShape<typeof WebhookSchema> {
  return viewOf(WebhookSchema, row, { types: row.types === "" ? [] : row.types.split(",") });
}

function viewWithSecret(row: WebhookRow) {
  return { webhook: viewWebhook(row), secret: row.secret ?? "" };
}

function viewDelivery(row: DeliveryRow): MessageInitShape<typeof DeliverySchema> {
  const { attempted_at: attemptedAt, due_at: dueAt, status, latency_ms: latencyMs, error, answer } = row;
  return viewOf(DeliverySchema, row, {
    data: JSON.parse(row.data) as JsonObject,
    ...(dueAt && { nextAttemptAt: timestampFromDate(dueAt) }),
    ...(attemptedAt && { outcome: { status: status ?? 0, latencyMs: latencyMs ?? 0, error, answer } }),
  });
}

export const webhookService = defineService(WebhookService, {
  createWebhook: (deps, request, call) => createWebhook(deps, call.key.accountId, request, call),
  listWebhooks: async ({ database }, _request, { key }) => ({
    webhooks: (await listRows(database, key.accountId)).map(viewWebhook),
  }),
  getWebhook: async ({ database }, { webhookId }, { key }) => ({
    webhook: viewWebhook(await getRow(database, key.accountId, webhookId)),
  }),
  updateWebhook: async (deps, request, call) => {
    const { webhookId, state } = request;
    const row = await makeLoggedChange(deps, call, { target: webhookId, details: { state } }, (action) =>
      updateRow(deps.database, action, webhookId, changesOf(deps, request)),
    );
    return { webhook: viewWebhook(row) };
  },
  deleteWebhook,
  rotateWebhook,
  testWebhook,
  listDeliveries: (deps, request, { key }) => listDeliveries(deps, key.accountId, request),
  redeliver: (deps, request, call) => {
    const { webhookId, eventId } = request;
    const change = { target: webhookId, details: { event_id: eventId } };
    return makeLoggedChange(deps, call, change, (action) => redeliver(deps, action, request));
  },
});

/** What differs for operators, who may act on all webhooks. */
export const webhooksOfOperators = {
  createWebhook: async (deps: Deps, request: CreateAnyWebhookRequest, call: ApiCall) => {
    const { reason } = request;
    const change = { reason, details: detailsOf(request) };
    const accountId = request.accountId === "" ? "" : await accountIdToChange(deps, call, request.accountId, change);
    return await createWebhook(deps, accountId, request, call);
  },
  listWebhooks: async (deps: Deps, { accountId }: ListAllWebhooksRequest, call: ApiCall) => {
    const id = await accountIdToRead(deps, call, accountId);
    return { webhooks: (await listRows(deps.database, id)).map(viewWebhook) };
  },
  updateWebhook: async (deps: Deps, request: UpdateAnyWebhookRequest, call: ApiCall) => {
    const { webhookId, reason } = request;
    const changes = changesOf(deps, request);
    const details = { fields: Object.keys(changes).join(","), state: changes.state };
    const row = await makeLoggedChange(deps, call, { target: webhookId, reason, details }, (action) =>
      updateRow(deps.database, action, webhookId, changes),
    );
    return { webhook: viewWebhook(row) };
  },
  deleteWebhook,
  rotateWebhook,
  testWebhook,
  listDeliveries: (deps: Deps, request: ListAllDeliveriesRequest) => listDeliveries(deps, "", request),
  redeliver: async (deps: Deps, request: RedeliverAnyRequest, call: ApiCall) => {
    const { webhookId, eventId, from, to, reason } = request;
    const details = {
      event_id: eventId,
      from: dateOf("from", from)?.toISOString(),
      to: dateOf("to", to)?.toISOString(),
    };
    return await makeLoggedChange(deps, call, { target: webhookId, reason, details }, (action) =>
      redeliver(deps, action, request),
    );
  },
};
