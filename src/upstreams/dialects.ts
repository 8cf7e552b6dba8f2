import type { ModelTraits, RemoteKind, RemoteSettings, UpstreamSettings } from "../domain/model.ts";
import { anthropicDialect, anthropicProblem } from "./anthropic/dialect.ts";
import type { Dialects, PromptProblem, UnsizedPrompt } from "./dialect.ts";
import { createOpenaiDialect, openaiProblem } from "./openai/dialect.ts";
import { openaiResponsesDialect, openaiResponsesProblem } from "./openai-responses/dialect.ts";

type Kind = {
  readonly create: (settings: RemoteSettings) => Dialects;
  /** The first part of a prompt that this kind of server cannot get. It is known before a request is made. */
  readonly problemWith: (prompt: UnsizedPrompt, traits: ModelTraits) => PromptProblem | undefined;
};

/** The dialect, in a folder of its own, of each kind of model server. */
const KINDS: Readonly<Record<RemoteKind, Kind>> = {
  openai: { create: createOpenaiDialect, problemWith: openaiProblem },
  "openai-responses": { create: () => openaiResponsesDialect, problemWith: openaiResponsesProblem },
  anthropic: { create: () => anthropicDialect, problemWith: anthropicProblem },
};

export function createDialect(settings: RemoteSettings): Dialects {
  return KINDS[settings.kind].create(settings);
}

/** Why an upstream cannot get the prompt; undefined if it can. The sandbox can get every prompt. */
export function problemWith({ kind }: UpstreamSettings, prompt: UnsizedPrompt, traits: ModelTraits): PromptProblem | undefined {
  return kind === "sandbox" ? undefined : KINDS[kind].problemWith(prompt, traits);
}
