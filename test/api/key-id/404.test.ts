import { describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../../support/app.ts";
import { operatorOf, useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";
import { typeIds } from "../../support/type-ids.ts";

const app = useTestApp();
const calling = useTestKey(app);
const foreign = useTestKey(app);

const { getKey, revokeKey } = KeyService.method;
/** Both have only a key_id. */
const methods = [getKey, revokeKey as unknown as typeof getKey];

describe.each(protocols)("$name", ({ open }) => {
  describe.each(methods)("$name", (method) => {
    test.each([
      { what: "an unknown id", keyId: () => typeIds.key(5) },
      { what: "a key of another account", keyId: () => foreign.id },
      { what: "the id of an account", keyId: () => calling.accountId },
      { what: "a pattern", keyId: () => "%" },
      { what: "an invalid id", keyId: () => "'; DROP TABLE vx.keys; -- 🔑" },
    ])("$what is not found", async ({ keyId }) => {
      const caller = open(app.url);
      const outcome = await caller.call(method, { keyId: keyId() }, bearer(calling.secret));
      caller.close();
      expect(outcome).toMatchObject({ code: "not_found", reason: "not_found" });
    });

    test("the id of another account's key and an unknown id get the same message", async () => {
      const caller = open(app.url);
      const [known, unknown] = [
        await caller.call(method, { keyId: foreign.id }, bearer(calling.secret)),
        await caller.call(method, { keyId: typeIds.key(5) }, bearer(calling.secret)),
      ];
      caller.close();
      const text = (outcome: typeof known) => (outcome.ok ? "" : outcome.text.replace(/key_\w+/, "…"));
      expect(text(known)).toBe(text(unknown));
    });
  });
});

test("the key of another account stays active", async () => {
  const { apiKeys } = await operatorOf(app).listKeys({ accountId: foreign.accountId });
  expect(apiKeys).toMatchObject([{ id: foreign.id, state: "active" }]);
});
