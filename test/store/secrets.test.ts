import { expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { fingerprintOf } from "../../src/domain/credentials.ts";
import { openAny, rpcMethods } from "../support/any-method.ts";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { dumpTables } from "../support/database.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";

const app = useOwnApp({ env: { VX_LOG_LEVEL: "trace" } });
const operator = useOperator(app);

test("no table, log line or metric contains a full key", async () => {
  const calling = await createTestKey(operator);
  const secrets = [calling.secret, await createByApi(calling.secret)];
  for (const secret of secrets) await useEverywhere(secret);
  await operator.revokeKey({ keyId: calling.id });
  await useEverywhere(calling.secret);

  const tables = await dumpTables(app.database);
  const metrics = await fetch(`${app.adminUrl}/metrics`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  const written = { tables, log: app.logText(), metrics: await metrics.text() };
  for (const secret of secrets) {
    // The prefix must be found, otherwise the search below covers the wrong places.
    expect(written.tables).toContain(fingerprintOf(secret));
    for (const [where, text] of Object.entries(written)) {
      expect(text.includes(secret), where).toBe(false);
      expect(text.includes(secret.slice(12, -4)), where).toBe(false);
      expect(text.includes(Buffer.from(secret).toString("hex")), where).toBe(false);
      expect(text.includes(Buffer.from(secret).toString("base64").slice(0, -4)), where).toBe(false);
    }
  }
  expect(written.log).toContain(calling.id);
});

async function createByApi(secret: string): Promise<string> {
  const caller = protocols[0]?.open(app.url);
  const outcome = await caller?.call(KeyService.method.createKey, { name: "ci" }, bearer(secret));
  caller?.close();
  return outcome?.ok ? outcome.message.secret : "";
}

/** Sends the key as header, mistyped, in the query, in the path, as an id and in other headers. */
async function useEverywhere(secret: string): Promise<void> {
  const [protocol] = protocols;
  if (!protocol) return;
  const caller = openAny(protocol, app.url);
  for (const method of rpcMethods) {
    await caller.end(method, bearer(secret));
    await caller.end(method, bearer(`${secret}0`));
  }
  caller.close();
  const unary = protocol.open(app.url);
  await unary.call(KeyService.method.getKey, { keyId: secret }, bearer(secret));
  await unary.call(MeService.method.getMe, {}, { ...bearer(secret), "user-agent": secret, cookie: secret });
  unary.close();
  const headers = { "content-type": "application/json", "x-request-id": secret };
  await sendHttp1(app.url, { path: `/vx.v1.MeService/GetMe?key=${secret}`, headers, body: "{}" });
  await sendHttp1(app.url, { path: `/v1/${secret}`, headers, body: secret });
}
