import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { REMOTE_KINDS } from "../../src/domain/model.ts";
import { createDialect, problemWith } from "../../src/upstreams/dialects.ts";
import { writeBody } from "../../src/upstreams/http/request-body.ts";
import { requestProblems } from "../support/fake-upstreams/request-schemas.ts";
import { runs } from "../support/runs.ts";
import { atomsOf, DECODERS, normalized } from "./body-decoders.ts";
import { randomPrompt } from "./random-prompts.ts";
import { bytesOf } from "./requests-support.ts";

const RUNS = runs(100);

describe.each(REMOTE_KINDS)("%s", (kind) => {
  const settings = { kind, baseUrl: "http://127.0.0.1", apiKeyEnv: undefined, model: "m", timeoutMs: 1_000 };
  const dialect = createDialect(settings);
  const carried = randomPrompt.filter((prompt) => !problemWith(settings, prompt, prompt.traits));

  test("the body of a random prompt is valid, and a server reads the same conversation from it", () => {
    fc.assert(
      fc.property(carried, fc.constantFrom("m", "claude-opus-5"), (prompt, model) => {
        const body: unknown = JSON.parse(JSON.stringify(dialect.body(prompt, model)));
        expect(requestProblems(kind, body)).toEqual([]);
        expect(normalized(DECODERS[kind](body), kind)).toEqual(atomsOf(prompt, kind));
      }),
      { numRuns: RUNS },
    );
  });

  test("a body that is encoded in parts is the same", async () => {
    await fc.assert(
      fc.asyncProperty(carried, async (prompt) => {
        const body = dialect.body(prompt, "m");
        const { parts } = await writeBody(body, 1_000_000);
        const text = bytesOf(parts).toString();
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(body)));
      }),
      { numRuns: RUNS },
    );
  });

  test("the options of a random prompt are all in the body", () => {
    fc.assert(
      fc.property(carried, (prompt) => {
        const { tools = [], topP, responseFormat } = prompt.options;
        const text = JSON.stringify(dialect.body(prompt, "m"));
        const sent = JSON.parse(text) as Record<string, unknown>;
        expect(sent.top_p).toBe(topP);
        for (const tool of tools) expect(text).toContain(`"name":"${tool.name}"`);
        if (responseFormat?.kind === "json_schema") expect(text).toContain(JSON.stringify(responseFormat.schema));
        const { budget_tokens: budget = 0 } = (sent.thinking ?? {}) as { budget_tokens?: number };
        expect(budget).toBeLessThan(prompt.maxTokens);
      }),
      { numRuns: RUNS },
    );
  });
});
