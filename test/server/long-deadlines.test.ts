import { expect, test } from "vitest";
import { generators } from "../support/generators.ts";
import { REQUEST, useMetered } from "../support/metered.ts";

/** More than a timer of Node can wait. Set by hand, because the clients have timers of their own. */
const headers = { "grpc-timeout": "99999999H", "connect-timeout-ms": "9999999999" };

const metered = useMetered();

test.each(generators.filter(({ name }) => name === "gRPC" || name.startsWith("Connect binary")))(
  "a deadline of years does not pass at once over $name",
  async ({ open }) => {
    const key = await metered.payer(1_000n);
    const generator = open(metered.app.url);
    const reply = await generator.generate(REQUEST, { secret: key.secret, headers });
    generator.close();
    expect(reply.finishReason).toBe("stop");
  },
);
