import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { withDeps } from "../../src/api/define-service.ts";
import type { Metering } from "../../src/app/create-metering.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { usageOf } from "../../src/domain/price.ts";
import type { Reply } from "../../src/generations/generation-request.ts";
import { generateService } from "../../src/generations/service.ts";
import { Admitter } from "../../src/keys/admit.ts";
import { createKey } from "../../src/keys/store.ts";
import { policiesOf } from "../../src/rules/policy.ts";
import { FailedAuthentications } from "../../src/server/credentials/failed-authentications.ts";
import { bodyBudget } from "../../src/server/http/connection-limits.ts";
import { pathOf } from "../../src/server/http/message.ts";
import { chainOfKeys, compose } from "../../src/server/interceptors/chain.ts";
import type { AnyInterceptor, Interceptor, ReadCall } from "../../src/server/interceptors/interceptor.ts";
import { restServer } from "../../src/server/wire/rest.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { startMetering } from "../generations/start-metering.ts";
import { TEST_ACTION } from "../support/action.ts";
import { withinOneMinute } from "../support/minute.ts";
import { createPayer } from "../support/payer.ts";
import { bearer } from "../support/protocols.ts";
import { modelOf } from "../support/samples.ts";
import { clock, useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useStore();
const MODEL = modelOf();
const STAGES = ["observe", "deadline", "authenticate", "limitRate", "read", "validate", "meter", "invoke"];

let metering: Metering;
beforeAll(async () => {
  async function* streamEvents() {
    yield { kind: "done", finishReason: "stop", usage: undefined } as never;
  }
  const tokens = new TokenCounter();
  metering = await startMetering(store, () => MODEL, { tokens, streamEvents });
  return async () => {
    await metering.stop();
    await tokens.close();
  };
});

/** In the place of "meter": the reply of a generation for which nothing is held or charged. */
const unmetered: Interceptor<ReadCall> = (next) => async (call) => {
  const output = { text: "hi", reasoning: [], toolCalls: [] };
  const ended = {
    output,
    finishReason: "stop",
    loweredMaxTokens: undefined,
    usage: usageOf({ inputTokens: 1, outputTokens: 1 }),
  } as const;
  const reply: Reply = {
    id: typeIds.generation(laneOfId(call.key.accountId)),
    model: MODEL.id,
    ...ended,
    costMicros: 0n,
    balanceMicros: 0n,
  };
  const { invoke } = call.method;
  if (typeof invoke !== "function") call.result = invoke.respond(reply as never, call.message as never, {} as never);
  await next(call);
};

/** The status of one call for each rule, with the chain of keys but one of its stages. */
async function statusesWithout(name?: string) {
  const log = { isLevelEnabled: () => false } as never;
  const components = {
    log,
    metrics: createMetrics("test"),
    startTrace: undefined,
    shutdownSignal: new AbortController().signal,
    budget: new BodyBudget(bodyBudget),
    admitter: new Admitter(store.database, { pipelines: 1, maxWaiting: 10, clocks: [clock] }),
    failures: new FailedAuthentications(0, Date.now),
    meter: metering.meter,
  };
  const stages = chainOfKeys(components).flatMap((stage, i): AnyInterceptor[] => {
    if (STAGES[i] !== name) return [stage];
    return name === "meter" ? [unmetered] : [];
  });
  const serve = compose(stages);
  const services = [withDeps(generateService, { catalog: { get: () => MODEL } } as never)];
  const rest = restServer({ serve, services, policies: policiesOf([GenerateService]), maxBodyBytes: 1_000 });
  const server = createServer((request, response) => void rest.serve(request, response, pathOf(request) ?? "", "req_1"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const call = async (secret: string, fields = {}) => {
    const body = { model: MODEL.id, messages: [{ role: "user", content: "hi" }], max_tokens: 10, ...fields };
    const headers = { ...bearer(secret), "content-type": "application/json" };
    const answer = await fetch(`http://127.0.0.1:${port}/v1/generate`, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.status;
  };
  const rich = await secretOf(1_000_000n, 1_000);
  const limited = await secretOf(1_000_000n, 1);
  return {
    good: await call(rich),
    unknown: await call(generateKey(laneOfId(typeIds.account()), randomBytes).secret),
    overLimit: await withinOneMinute(async () => {
      await call(limited);
      return await call(limited);
    }),
    invalid: await call(rich, { temperature: 9 }),
    unpaid: await call(await secretOf(0n, 1_000)),
  };
}

async function secretOf(balanceMicros: bigint, rateLimitRpm: number): Promise<string> {
  const { accountId } = await createPayer(store.database, balanceMicros);
  const lane = laneOfId(accountId);
  const secret = generateKey(lane, randomBytes);
  const key = {
    id: typeIds.key(lane),
    accountId,
    columns: { name: "test", rate_limit_rpm: rateLimitRpm },
  };
  await createKey(store.database, TEST_ACTION, key, secret);
  return secret.secret;
}

const ALL = { good: 200, unknown: 401, overLimit: 429, invalid: 400, unpaid: 402 };

test("each error of a call comes from its stage alone", async () => {
  expect(await statusesWithout()).toEqual(ALL);
  expect(await statusesWithout("limitRate")).toEqual({ ...ALL, overLimit: 200 });
  expect(await statusesWithout("validate")).toEqual({ ...ALL, invalid: 200 });
  expect(await statusesWithout("meter")).toEqual({ ...ALL, unpaid: 200 });
});
