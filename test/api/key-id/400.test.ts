import { describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../../support/app.ts";
import { useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const app = useTestApp();
const calling = useTestKey(app);

const { getKey, revokeKey } = KeyService.method;
/** Both have only a key_id. */
const methods = [getKey, revokeKey as unknown as typeof getKey];

describe.each(protocols)("$name", ({ open }) => {
  describe.each(methods)("$name", (method) => {
    test.each([
      { what: "no id", keyId: () => "" },
      { what: "the key itself", keyId: () => calling.secret },
      { what: "an id of 65 characters", keyId: () => "k".repeat(65) },
      { what: "NUL in the id", keyId: () => "key_\u0000" },
      { what: "a line break in the id", keyId: () => "key_1\n" },
      { what: "a C1 control character in the id", keyId: () => "key_\u0085" },
    ])("$what is a 400 that names key_id", async ({ keyId }) => {
      const caller = open(app.url);
      const outcome = await caller.call(method, { keyId: keyId() }, bearer(calling.secret));
      caller.close();
      expect(outcome).toMatchObject({ reason: "invalid_argument", fields: ["key_id"] });
    });
  });
});
