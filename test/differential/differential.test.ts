import { describe, expect, test } from "vitest";
import { started } from "../support/started.ts";
import { CHANGES } from "./changes.ts";
import { loggedCalls } from "./logged-calls.ts";
import { compareAll, randomCase, sampledCases, systematicCases } from "./run.ts";
import { startTwinServers } from "./twins.ts";

/** The long form, `npm run differential`, sets both. */
const SEED = Number(process.env.VX_DIFFERENTIAL_SEED ?? 1);
const MINUTES = Number(process.env.VX_DIFFERENTIAL_MINUTES ?? 0);

const RANDOM_CALLS = 400;
/** The long form stops by time. */
const MAX_RANDOM_CALLS = 100_000_000;

/** Every protocol with every codec must have ended in each of these ways, or the run tested less than it should. */
// biome-ignore format: a few lines
const ENDINGS = [
  "200", "context_length_exceeded", "deadline_exceeded", "expired_api_key", "generation_interrupted", "idempotency_key_reused",
  "insufficient_balance", "insufficient_scope", "invalid_api_key", "invalid_argument", "key_limit_reached", "missing_api_key",
  "model_not_found", "not_found", "rate_limit_exceeded", "request_too_large", "revoked_api_key", "unsupported_media_type",
  "upstream_error",
];
const FORMS = ["grpc", "grpc-web", "connect"].flatMap((protocol) => [`${protocol} binary`, `${protocol} json`]);

/** The share of calls that must get a response of the database in time. */
const MIN_COMPARED = 0.98;

let lost = 0;

const servers = started(() => startTwinServers());

describe("the direct path and Connect respond with the same bytes", () => {
  test(`to every outcome in every form, seed ${SEED}`, { timeout: 600_000 }, async () => {
    const cases = MINUTES > 0 ? systematicCases(SEED) : sampledCases(SEED);
    const { compared, unavailable, endings, differences } = await compareAll(servers, cases);
    lost += unavailable;
    expect(differences).toEqual([]);
    expect(compared).toBeGreaterThan(cases.length * MIN_COMPARED);
    const missing = FORMS.flatMap((form) => ENDINGS.map((ending) => `${form}: ${ending}`)).filter(
      (ending) => !endings.has(ending),
    );
    expect(missing).toEqual([]);
  });

  test(`to random and malformed calls, seed ${SEED}`, { timeout: MINUTES * 60_000 + 120_000 }, async () => {
    const { compared, unavailable, differences } = await compareAll(servers, randomCases());
    lost += unavailable;
    console.log(`${compared} random calls, each with up to 4 of ${Object.keys(CHANGES).length} changes`);
    expect(differences).toEqual([]);
    expect(compared).toBeGreaterThan((compared + unavailable) * MIN_COMPARED);
  });

  test("and log the same calls with the same results", ({ skip }) => {
    skip(lost > 0, `${lost} calls waited too long for the database`);
    const [direct, connect] = servers.logs.map(loggedCalls);
    expect(direct?.size).toBeGreaterThan(100);
    expect(direct).toEqual(connect);
  });
});

function* randomCases() {
  const endsAt = performance.now() + MINUTES * 60_000;
  const calls = MINUTES > 0 ? MAX_RANDOM_CALLS : RANDOM_CALLS;
  for (let number = 0; number < calls; number++) {
    if (MINUTES > 0 && performance.now() > endsAt) return;
    yield randomCase(SEED, number);
  }
}
