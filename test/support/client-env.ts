import type { TestApp } from "./app.ts";
import { createTestKey, operatorOf } from "./fixtures.ts";
import { createPaidKey } from "./openai.ts";

/** The variables that scripts of clients read: the server and keys that are paid, unpaid, limited and unknown. */
export async function clientEnv(app: TestApp): Promise<Record<string, string>> {
  const operator = operatorOf(app);
  return {
    VX_URL: app.url,
    VX_HOST_AND_PORT: new URL(app.url).host,
    VX_KEY: (await createPaidKey(operator, { scopes: ["generate", "read", "keys", "webhooks"] })).secret,
    VX_BROKE_KEY: (await createTestKey(operator)).secret,
    VX_LIMITED_KEY: (await createPaidKey(operator, { rateLimitRpm: 1 })).secret,
    VX_NO_KEY: "vx_live_nobody",
  };
}
