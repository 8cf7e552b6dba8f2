import { TokenCounter } from "../../src/tokens/token-counter.ts";
import { SandboxUpstream } from "../../src/upstreams/sandbox/sandbox.ts";
import type { Upstream } from "../../src/upstreams/upstream.ts";
import { byteByByte, reply } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { WIRES_OF_KIND, type Wire } from "../support/fake-upstreams/wire.ts";
import { openRemote } from "./support.ts";

/** An upstream, open and working. */
export type Subject = {
  readonly name: string;
  /** Replies to PROMPT with some text, slowly enough for an abort during the reply. */
  open(): Promise<{ readonly upstream: Upstream; close(): Promise<void> }>;
};

export const WIRES: readonly Wire[] = Object.values(WIRES_OF_KIND).flat();
export const STREAMED_WIRES = WIRES.filter(({ contentType }) => !contentType.includes("json"));

/** A stream, a whole reply and the sandbox; the other kinds of upstreams differ from the first two only in their bodies. */
export const SUBJECTS: readonly Subject[] = [
  ...WIRES_OF_KIND.openai.map((wire) => ({ name: wire.name, open: () => openFake(wire) })),
  { name: "sandbox", open: openSandbox },
];

async function openSandbox(): ReturnType<Subject["open"]> {
  const tokens = new TokenCounter();
  const upstream = new SandboxUpstream({
    settings: { kind: "sandbox", delayMs: 1 },
    countPrompt: (messages, signal) => tokens.countPrompt(messages, { signal }),
  });
  return { upstream, close: () => tokens.close() };
}

async function openFake(wire: Wire): ReturnType<Subject["open"]> {
  const usual = STREAMED_WIRES.includes(wire) ? byteByByte({}) : reply();
  const fake = await FakeUpstream.start({ wire, usual });
  const upstream = openRemote(fake.settings());
  return {
    upstream,
    close: async () => {
      await upstream.close();
      await fake.stop();
    },
  };
}
