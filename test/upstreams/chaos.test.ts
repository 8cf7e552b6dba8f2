import { expect, test } from "vitest";
import { DomainError } from "../../src/domain/errors.ts";
import * as behaviours from "../support/fake-upstreams/behaviours.ts";
import { type Behaviour, DEFAULT_REPLY, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire, openaiWire } from "../support/fake-upstreams/wire.ts";
import { createTestRunner, modelOf } from "./runner-support.ts";
import { callOf } from "./support.ts";

const CALLS = 100;
const CALLERS = 50;
const WHOLE = DEFAULT_REPLY.pieces.join("");
const BEHAVIOURS: readonly Behaviour[] = [
  behaviours.reply(),
  behaviours.reply(),
  behaviours.reply({ usage: undefined }),
  behaviours.replyAndClose,
  behaviours.silent,
  behaviours.silentAfter(1),
  behaviours.endAfter(2),
  behaviours.hangUpAfter(0),
  behaviours.hangUpAfter(2),
  behaviours.resetAtOnce,
  behaviours.errorInside(0),
  behaviours.errorInside(1),
  behaviours.gzipped,
  behaviours.refuse(400),
  behaviours.refuse(429),
  behaviours.refuse(500),
];

test("many calls with random failures end exactly once and release all resources", async () => {
  const fakes = await Promise.all([openaiWire, anthropicWire].map((wire) => FakeUpstream.start({ wire })));
  let state = 7;
  const draw = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (const fake of fakes) fake.always((turn) => BEHAVIOURS[draw(BEHAVIOURS.length)]?.(turn));
  const slots = { maxRunning: 35, maxWaiting: 60, maxWaitMs: 60_000 };
  const runner = createTestRunner({ slots });
  const model = modelOf(...fakes.map((fake) => fake.settings({ timeoutMs: 50 })));
  await runner.use([model]);

  const endings = new Map<string, number>();
  const left = new Error("caller disconnected");
  const call = async () => {
    const leaving = new AbortController();
    // Some calls are aborted, some readers stop early; most read to the end.
    const choice = draw(10);
    let text = "";
    let ending = "stopped";
    if (choice === 0) setImmediate(() => leaving.abort(left));
    try {
      for await (const event of runner.streamEvents(callOf(model, { signal: leaving.signal }))) {
        if (event.kind === "done") ending = text === WHOLE ? "whole" : "wrong";
        else if (event.kind === "text") text += event.text;
        if (event.kind === "text" && choice === 1) break;
      }
    } catch (error) {
      ending = error === left ? "left" : error instanceof DomainError ? error.reason : String(error);
      if (!WHOLE.startsWith(text)) ending = "wrong";
    }
    endings.set(ending, (endings.get(ending) ?? 0) + 1);
  };
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (let i = 0; i < CALLS / CALLERS; i++) await call();
    }),
  );

  expect([...endings.keys()].sort()).toEqual(["left", "stopped", "upstream_error", "whole"]);
  expect([...endings.values()].reduce((sum, count) => sum + count)).toBe(CALLS);
  expect(runner.status()).toMatchObject(fakes.map(() => ({ running: 0, waiting: 0, breaker: "closed" })));
  for (const fake of fakes) await fake.until(({ calls }) => calls.every(({ ended }) => ended !== "running"));
  await runner.close();
  for (const fake of fakes) await fake.until(({ openConnections }) => openConnections === 0);
  await Promise.all(fakes.map((fake) => fake.stop()));
});
