import { afterAll, beforeAll, expect, test } from "vitest";
import { generators } from "../support/generators.ts";
import { type Metered, REQUEST, startMetered } from "../support/metered.ts";

/** More than a timer of Node can wait. Set by hand, because the clients have timers of their own. */
const headers = { "grpc-timeout": "99999999H", "connect-timeout-ms": "9999999999" };

let metered: Metered;

beforeAll(async () => {
  metered = await startMetered();
});
afterAll(() => metered.stop());

test.each(generators.filter(({ hasDeadlines }) => hasDeadlines))(
  "a deadline of years does not pass at once over $name",
  async ({ open }) => {
    const key = await metered.payer(1_000n);
    const generator = open(metered.app.url);
    const reply = await generator.generate(REQUEST, { secret: key.secret, headers });
    generator.close();
    expect(reply.finishReason).toBe("stop");
  },
);
