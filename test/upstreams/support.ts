import { afterEach, beforeEach } from "vitest";
import type { Model, RemoteSettings } from "../../src/domain/model.ts";
import { type Delta, type Output, OutputBuilder } from "../../src/domain/output.ts";
import { firstTokens } from "../../src/tokens/count-tokens.ts";
import type { Dialect } from "../../src/upstreams/dialect.ts";
import { Connections } from "../../src/upstreams/http/connection-pool.ts";
import { ReplyBuffer } from "../../src/upstreams/http/reply-buffer.ts";
import { openUpstream } from "../../src/upstreams/open-upstream.ts";
import {
  Progress,
  type Upstream,
  type UpstreamCall,
  type UpstreamEnd,
  type UpstreamEvent,
} from "../../src/upstreams/upstream.ts";
import { UpstreamFailure } from "../../src/upstreams/upstream-failure.ts";
import { type Behaviour, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { WIRES_OF_KIND, type Wire } from "../support/fake-upstreams/wire.ts";
import { promptOf } from "../support/samples.ts";

export const PROMPT = promptOf({ messages: [{ role: "user", content: "Say hello." }] });

export const WIRES: readonly Wire[] = Object.values(WIRES_OF_KIND).flat();
export const STREAMED_WIRES = WIRES.filter(({ contentType }) => !contentType.includes("json"));

export const NEVER = new AbortController().signal;

/** A call of the account "acct_1" with PROMPT, unless the options say otherwise. */
export function callOf(model: Model, options: Partial<UpstreamCall> = {}): UpstreamCall {
  return {
    model,
    prompt: PROMPT,
    accountId: "acct_1",
    idempotencyKey: undefined,
    requestId: "req_1",
    trace: undefined,
    signal: NEVER,
    progress: new Progress(),
    ...options,
  };
}

/** An upstream over HTTP with connections of its own. */
export function openRemote(settings: RemoteSettings, env: Record<string, string> = {}): Upstream {
  return openUpstream(settings, {
    connections: new Connections(),
    env,
    loadFirstTokens: async () => firstTokens,
    openSandbox: () => {
      throw new Error("no sandbox here");
    },
  });
}

/** What a reader makes of the events, or of a whole reply, of an upstream. */
export function replyOf(
  { createReader }: Pick<Dialect, "createReader">,
  events: readonly (object | string)[] | { readonly whole: object },
  maxTokens = 1_000,
): { deltas: Delta[]; output: Output; done: UpstreamEnd | undefined } {
  const reply = new ReplyBuffer(maxTokens);
  const reader = createReader(reply, PROMPT);
  const builder = new OutputBuilder();
  const deltas: Delta[] = [];
  const take = () => {
    for (let event = reply.nextEvent(); event; event = reply.nextEvent()) {
      if (event.kind === "done") return event;
      deltas.push(event);
      builder.append(event);
    }
    return undefined;
  };
  let done: UpstreamEnd | undefined;
  if ("whole" in events) {
    reader.readWhole(JSON.stringify(events.whole));
    done = take();
  } else {
    for (const event of events) {
      reader.readEvent(typeof event === "string" ? event : JSON.stringify(event));
      done = take();
      if (done) break;
    }
  }
  if (!done && reply.state === "cut") {
    reply.fail(new Error("the events have ended"));
    done = take();
  }
  return { deltas, output: builder.output, done };
}

export type Outcome = {
  readonly text: string;
  readonly pieces: readonly string[];
  readonly done: UpstreamEnd | undefined;
  readonly failure: unknown;
};

/** Reads to the end or the failure. */
export async function read(events: AsyncIterable<UpstreamEvent>): Promise<Outcome> {
  const pieces: string[] = [];
  let done: Outcome["done"];
  let failure: unknown;
  try {
    for await (const event of events) {
      if (done) throw new Error("there was an event after the end");
      if (event.kind === "text") pieces.push(event.text);
      else if (event.kind === "done") done = event;
    }
  } catch (error) {
    failure = error;
  }
  return { text: pieces.join(""), pieces, done, failure };
}

/** "garbled" for an UpstreamFailure of that kind, the error itself for anything else. */
export function kindOf(failure: unknown): unknown {
  return failure instanceof UpstreamFailure ? failure.kind : failure;
}

/** A fake upstream with this wire format, and a connection to it, during each test. */
export function useFake(wire: Wire) {
  const state = {} as { fake: FakeUpstream; upstream: Upstream };
  beforeEach(async () => {
    state.fake = await FakeUpstream.start({ wire });
    state.upstream = openRemote(state.fake.settings());
  });
  afterEach(async () => {
    await state.upstream.close();
    await state.fake.stop();
  });
  const ask = (behaviour: Behaviour, prompt = PROMPT) => {
    state.fake.next(behaviour);
    return read(state.upstream.generate(prompt, NEVER));
  };
  return { state, ask };
}
