import { create, type DescField, type DescMethod, type Message } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { callAny, developerMethods } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator, useTestKey } from "../support/fixtures.ts";
import { callOf } from "../support/protocols.ts";
import { typeIds } from "../support/type-ids.ts";

/** The page tokens of the other account, by method. */
const foreignPages = new Map<DescMethod, string>();

const { listKeys } = KeyService.method;
const { listEntries } = LedgerService.method;

const app = useTestApp();
const operator = useOperator(app);
const calling = useTestKey(app);
const foreign = useTestKey(app);
const [call, end] = [callOf(app), callAny(app)];
beforeAll(async () => {
  for (const { accountId } of [calling, foreign]) {
    await createTestKey(operator, { accountId });
    for (const idempotencyKey of ["1", "2"]) {
      await operator.creditAccount({ accountId, amountMicros: 1_000n, reason: "test", idempotencyKey });
    }
  }
  for (const method of [listKeys, listEntries] as const) {
    const page = await call(method as typeof listKeys, { pageSize: 1 }, foreign.secret);
    if (page?.ok) foreignPages.set(method, page.message.nextPageToken);
  }
});

type Place = { readonly name: string; readonly method: DescMethod; readonly field: DescField };

/** Every request field that can refer to data of an account: an id or a page token. */
const places: readonly Place[] = developerMethods.flatMap((method) =>
  method.input.fields
    // Every value of previous_response_id is refused, because no response is stored.
    .filter(({ name }) => /(^|_)(id|ids|token)$/.test(name) && name !== "previous_response_id")
    .map((field) => ({ name: `${method.name} ${field.name}`, method, field })),
);

test("the fields that can refer to data of an account are complete", () => {
  expect(places.map(({ name }) => name).sort()).toEqual([
    // A filter: failed calls of other accounts never match.
    "CountFailures key_id",
    // Webhooks are tested in webhooks/manage.test.ts, events in webhooks/deliver.test.ts.
    "DeleteWebhook webhook_id",
    // Tested with generations, in list-entries/200.test.ts.
    "GetGeneration id",
    "GetKey key_id",
    // Tested in payments/top-ups.test.ts.
    "GetTopUp id",
    // A position is a time and texts; it names no account.
    "GetUsage page_token",
    "GetWebhook webhook_id",
    // A position in the deliveries of one webhook.
    "ListDeliveries page_token",
    "ListDeliveries webhook_id",
    // A filter: entries of other accounts never match.
    "ListEntries key_id",
    "ListEntries page_token",
    // The same.
    "ListFailures key_id",
    // A position is an id; it is looked up among the failed calls of the calling account.
    "ListFailures page_token",
    "ListKeys page_token",
    // Ids of models, which accounts share.
    "ListModelInfos after_id",
    "ListModelInfos before_id",
    // Models do not belong to an account.
    "ListModels after_id",
    "ListModels before_id",
    "ListModels page_token",
    // A position is an id; it is looked up among the top-ups of the calling account.
    "ListTopUps page_token",
    "Redeliver event_id",
    "Redeliver webhook_id",
    "RevokeKey key_id",
    "RotateKey key_id",
    "RotateWebhook webhook_id",
    "TestWebhook webhook_id",
    "UpdateKey key_id",
    "UpdateWebhook webhook_id",
  ]);
});

test.each(places.filter(({ method, field }) => field.name === "key_id" && !/^(List|Count)/.test(method.name)))(
  "$name of another account, and every other unknown id, is not found, with the same text",
  async ({ method, field }) => {
    for (const id of [foreign.id, typeIds.key(5), calling.accountId, "%", "'; DROP TABLE vx.keys; -- 🔑"]) {
      const ending = await end(method, calling.secret, requestWith(method, field, id));
      expect(ending).toMatchObject({ code: "not_found", reason: "not_found" });
      const unknown = await end(method, calling.secret, requestWith(method, field, "key_none"));
      expect(JSON.parse(ending.text).text.replace(id, "key_none")).toBe(JSON.parse(unknown.text).text);
    }
    const { apiKeys } = await operator.listKeys({ accountId: foreign.accountId });
    expect(apiKeys.every(({ state }) => state === "active")).toBe(true);
  },
);

test.each(["none", "VX-SANDBOX-SMALL", "vx-sandbox-small ", "constructor", "__proto__", "<b>🔑</b>"])(
  "%s is an unknown model",
  async (model) => {
    const outcome = await call(ModelService.method.getModel, { model }, calling.secret);
    expect(outcome).toMatchObject({ code: "not_found", reason: "model_not_found", fields: ["model"] });
  },
);

test("a page token of another account returns only rows of the calling account", async () => {
  const [keysToken, entriesToken] = foreignPages.values();
  const keys = await call(listKeys, { pageToken: keysToken ?? "" }, calling.secret);
  const entries = await call(listEntries, { pageToken: entriesToken ?? "" }, calling.secret);
  const { accountId } = calling;
  const own = await operator.listKeys({ accountId });
  const ledger = await operator.listLedgerEntries({ accountId });
  const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
  if (keys.ok) expect(idsOf(own.apiKeys)).toEqual(expect.arrayContaining(idsOf(keys.message.apiKeys)));
  else expect(keys.reason).toBe("invalid_argument");
  if (entries.ok) expect(idsOf(ledger.entries)).toEqual(expect.arrayContaining(idsOf(entries.message.entries)));
  else expect(entries.reason).toBe("invalid_argument");
});

function requestWith(method: DescMethod, field: DescField, value: string): Message {
  return create(method.input, { [field.localName]: value });
}
