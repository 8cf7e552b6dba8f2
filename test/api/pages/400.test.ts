import { describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../../gen/vx/v1/ledger_pb.js";
import { useTestApp } from "../../support/app.ts";
import { useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const app = useTestApp();
const calling = useTestKey(app);

const lists = [KeyService.method.listKeys, LedgerService.method.listEntries as never];

describe.each(protocols)("$name", ({ open }) => {
  describe.each(lists)("$name", (method: typeof KeyService.method.listKeys) => {
    test.each([
      { what: "a negative page_size", request: { pageSize: -1 }, field: "page_size" },
      { what: "the smallest page_size", request: { pageSize: -2_147_483_648 }, field: "page_size" },
      { what: "a made-up token", request: { pageToken: "next" }, field: "page_token" },
      { what: "a token that is not base64url", request: { pageToken: "MTprZXk=" }, field: "page_token" },
      { what: "a token of another version", request: { pageToken: token("2:1") }, field: "page_token" },
      { what: "a token with SQL in it", request: { pageToken: token("1:' OR 1=1") }, field: "page_token" },
      { what: "a token with NUL in it", request: { pageToken: token("1:key_\u0000") }, field: "page_token" },
      { what: "an empty position", request: { pageToken: token("1:") }, field: "page_token" },
      { what: "a token of 513 characters", request: { pageToken: "M".repeat(513) }, field: "page_token" },
    ])("$what is a 400 that names $field", async ({ request, field }) => {
      const caller = open(app.url);
      const outcome = await caller.call(method, request, bearer(calling.secret));
      caller.close();
      expect(outcome).toMatchObject({ reason: "invalid_argument", fields: [field] });
    });
  });

  test.each(["9".repeat(19), "9".repeat(100), "key_01"])(
    "ListEntries rejects the invalid position %j",
    async (position) => {
      const caller = open(app.url);
      const request = { pageToken: token(`1:${position}`) };
      const outcome = await caller.call(LedgerService.method.listEntries, request, bearer(calling.secret));
      caller.close();
      expect(outcome).toMatchObject({ reason: "invalid_argument", fields: ["page_token"] });
    },
  );
});

function token(text: string): string {
  return Buffer.from(text).toString("base64url");
}
