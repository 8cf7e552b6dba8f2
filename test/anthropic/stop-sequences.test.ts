import { describe, expect, test } from "vitest";
import { anthropic } from "../support/anthropic.ts";
import { useDialects } from "../support/dialects.ts";
import { raw, reply } from "../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../support/fake-upstreams/fake-upstream.ts";

const dialects = useDialects();

const request = (model: string) => ({
  model,
  max_tokens: 100,
  messages: [{ role: "user" as const, content: "Hi" }],
  stop_sequences: ["END", "\n\nQ:"],
});

/** How a unary reply and a stream end. */
async function endsOf(model: "anthropic" | "openai", behaviour: Behaviour) {
  const { app, key, upstreams } = dialects;
  const client = anthropic(app, key);
  upstreams[model].next(behaviour, behaviour);
  const unary = await client.messages.create(request(model));
  const streamed = await client.messages.stream(request(model)).finalMessage();
  const endOf = ({ stop_reason, stop_sequence }: typeof unary) => ({ stop_reason, stop_sequence });
  expect(endOf(streamed)).toEqual(endOf(unary));
  return endOf(unary);
}

const message = (delta: object) =>
  raw(
    [
      { type: "message_start", message: { usage: { input_tokens: 9 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "Yes." } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ]
      .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join(""),
  );
const completion = (end: object, content = "Yes.") =>
  raw(
    [JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: "stop", ...end }] }), "[DONE]"]
      .map((event) => `data: ${event}\n\n`)
      .join(""),
  );

describe("a message names the stop sequence that ended it", () => {
  const END = { stop_reason: "stop_sequence", stop_sequence: "END" };
  const UNKNOWN = { stop_reason: "stop_sequence", stop_sequence: null };
  const NONE = { stop_reason: "end_turn", stop_sequence: null };
  const CUT = { stop_reason: "max_tokens", stop_sequence: null };
  test.each([
    ["anthropic reports it", "anthropic", message({ stop_reason: "stop_sequence", stop_sequence: "END" }), END],
    ["anthropic does not report which", "anthropic", message({ stop_reason: "stop_sequence" }), UNKNOWN],
    ["anthropic reports another end", "anthropic", message({ stop_reason: "end_turn" }), NONE],
    ["the text of a chat completion ends with it", "openai", reply({ pieces: ["Yes. E", "ND"] }), END],
    ["vLLM reports it", "openai", completion({ stop_reason: "END" }), END],
    ["SGLang reports it", "openai", completion({ matched_stop: "END" }), END],
    ["vLLM reports the end token", "openai", completion({ stop_reason: 151_645 }), NONE],
    ["vLLM reports a stop text of its own", "openai", completion({ stop_reason: "</s>" }), NONE],
    ["the server removed it and reports nothing", "openai", reply({ pieces: ["Yes."] }), NONE],
    ["the reply was cut after it", "openai", completion({ finish_reason: "length" }, "END"), CUT],
  ] as const)("%s", async (_, model, behaviour, end) => {
    expect(await endsOf(model, behaviour)).toEqual(end);
  });

  test("the sandbox removes and reports it, even when the reply is repeated for a retry", async () => {
    const { app, key } = dialects;
    const client = anthropic(app, key);
    const body = { ...request("sandbox"), stop_sequences: ["never", " of the"] };
    const options = { headers: { "idempotency-key": "again" } };
    const end = { stop_reason: "stop_sequence", stop_sequence: " of the" };
    const first = await client.messages.create(body, options);
    expect(first).toMatchObject({ ...end, content: [{ type: "text", text: "This is a reply" }] });
    expect(await client.messages.create(body, options)).toEqual(first);
    expect(await client.messages.stream(body).finalMessage()).toMatchObject(end);
  });
});
