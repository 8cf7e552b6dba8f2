import { expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { useTestApp } from "../support/app.ts";
import { useOperator, useTestKey } from "../support/fixtures.ts";
import { bearer, callOf } from "../support/protocols.ts";
import { typeIds } from "../support/type-ids.ts";

const app = useTestApp();
const operator = useOperator(app);
const calling = useTestKey(app);
const foreign = useTestKey(app);
const call = callOf(app);

const unknownId = typeIds.key(5);
const { getKey, revokeKey } = KeyService.method;

test.each([
  ["an unknown id", () => unknownId],
  ["a key of another account", () => foreign.id],
  ["the id of an account", () => calling.accountId],
  ["a pattern", () => "%"],
  ["an invalid id", () => "'; DROP TABLE vx.keys; -- 🔑"],
])("%s is not found", async (_what, keyId) => {
  for (const method of [getKey, revokeKey as unknown as typeof getKey]) {
    const outcome = await call(method, { keyId: keyId() }, calling.secret);
    expect(outcome).toMatchObject({ code: "not_found", reason: "not_found" });
    // The text tells nothing about keys of other accounts.
    const unknown = await call(method, { keyId: "key_none" }, calling.secret);
    const text = (of: typeof outcome, id: string) => (of.ok ? "" : of.text.replace(id, "…"));
    expect(text(outcome, keyId())).toBe(text(unknown, "key_none"));
  }
  const { apiKeys } = await operator.listKeys({ accountId: foreign.accountId });
  expect(apiKeys).toMatchObject([{ id: foreign.id, state: "active" }]);
});

test.each(["none", "VX-SANDBOX-SMALL", "vx-sandbox-small ", "constructor", "__proto__", "<b>🔑</b>"])(
  "%s is an unknown model",
  async (model) => {
    const outcome = await call(ModelService.method.getModel, { model }, calling.secret);
    expect(outcome).toMatchObject({ code: "not_found", reason: "model_not_found", fields: ["model"] });
  },
);

test("REST returns 404 with the reason and the requested model", async () => {
  const answer = await fetch(`${app.url}/v1/models/none`, { headers: bearer(calling.secret) });
  expect(answer.status).toBe(404);
  const message = 'There is no model "none". GET /v1/models lists the models.';
  expect(await answer.json()).toMatchObject({ error: { code: "model_not_found", message, param: "model" } });
});
