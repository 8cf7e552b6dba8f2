import { isAtOrBelow } from "./surfaces.ts";

/** An API of OpenAI or Anthropic that this server does not have. */
export type UnsupportedApi = {
  /** The API is at this path and below it, except where this server has a route. */
  readonly path: string;
  readonly name: string;
  /** A sentence that says what to do instead. */
  readonly instead?: string;
};

const WHOLE_CONVERSATION = "Nothing is stored: send the whole conversation with each request.";
const FILES_IN_MESSAGES = "Send images in the messages, as base64 or data URLs.";
const OWN_AGENT = "Run the agent in your own program, with the tools of POST /v1/responses or POST /v1/messages.";
const OPERATORS = "Use /v1/keys, /v1/usage and /v1/ledger, or ask the operator of this server.";

/** `npm run generate` writes docs/unsupported.md from this table. */
export const UNSUPPORTED_APIS: readonly UnsupportedApi[] = [
  { path: "/v1/agents", name: "hosted agents", instead: OWN_AGENT },
  { path: "/v1/assistants", name: "assistants", instead: OWN_AGENT },
  { path: "/v1/audio", name: "audio (speech, transcriptions, translations, voices)" },
  { path: "/v1/batches", name: "batches", instead: "Send each request by itself." },
  { path: "/v1/chat/completions", name: "stored chat completions", instead: WHOLE_CONVERSATION },
  { path: "/v1/chatkit", name: "ChatKit sessions and threads", instead: OWN_AGENT },
  { path: "/v1/complete", name: "Anthropic's text completions", instead: "Use POST /v1/completions." },
  { path: "/v1/containers", name: "containers of hosted tools", instead: OWN_AGENT },
  { path: "/v1/content_provenance_checks", name: "checks of where content comes from" },
  { path: "/v1/conversations", name: "stored conversations", instead: WHOLE_CONVERSATION },
  { path: "/v1/decisions", name: "decisions", instead: "Use POST /v1/responses with a JSON schema." },
  { path: "/v1/deployment_runs", name: "runs of hosted agents", instead: OWN_AGENT },
  { path: "/v1/deployments", name: "deployments of hosted agents", instead: OWN_AGENT },
  { path: "/v1/dreams", name: "dreams of hosted agents" },
  { path: "/v1/environments", name: "environments of hosted agents", instead: OWN_AGENT },
  { path: "/v1/evals", name: "evaluations" },
  { path: "/v1/files", name: "stored files", instead: FILES_IN_MESSAGES },
  { path: "/v1/fine_tuning", name: "fine-tuning" },
  { path: "/v1/images", name: "image generation (generations, edits, variations)" },
  { path: "/v1/live", name: "live sessions", instead: "Use a stream of POST /v1/responses." },
  { path: "/v1/memory_stores", name: "memory stores of hosted agents" },
  {
    path: "/v1/messages/batches",
    name: "message batches",
    instead: "Send each request to POST /v1/messages.",
  },
  { path: "/v1/moderations", name: "moderation" },
  { path: "/v1/organization", name: "administration of an organization", instead: OPERATORS },
  { path: "/v1/organizations", name: "administration of an organization", instead: OPERATORS },
  { path: "/v1/projects", name: "administration of projects", instead: OPERATORS },
  { path: "/v1/realtime", name: "realtime sessions", instead: "Use a stream of POST /v1/responses." },
  { path: "/v1/responses", name: "stored responses", instead: WHOLE_CONVERSATION },
  { path: "/v1/responses/compact", name: "compaction of responses", instead: "Shorten the conversation." },
  {
    path: "/v1/responses/input_tokens",
    name: "counting the tokens of a response",
    instead: "Use POST /v1/messages/count_tokens or POST /v1/generate:quote.",
  },
  { path: "/v1/safety", name: "safety alerts and cases" },
  { path: "/v1/sessions", name: "sessions of hosted agents", instead: OWN_AGENT },
  { path: "/v1/skills", name: "skills of hosted tools" },
  { path: "/v1/threads", name: "stored threads", instead: WHOLE_CONVERSATION },
  { path: "/v1/tunnels", name: "tunnels of hosted agents" },
  { path: "/v1/uploads", name: "uploads of files", instead: FILES_IN_MESSAGES },
  { path: "/v1/user_profiles", name: "user profiles", instead: "Name the end user in each request." },
  { path: "/v1/vaults", name: "vaults of hosted agents" },
  {
    path: "/v1/vector_stores",
    name: "vector stores",
    instead: "Create vectors with POST /v1/embeddings and store them yourself.",
  },
  { path: "/v1/videos", name: "video generation" },
  { path: "/v1/webhook_endpoints", name: "webhooks" },
  { path: "/v1/webhook_event_types", name: "webhooks" },
];

/** The longest path is the most specific one. */
const MOST_SPECIFIC_FIRST = UNSUPPORTED_APIS.toSorted((one, other) => other.path.length - one.path.length);

/** The API that has the path elsewhere; the path has no route here. */
export function unsupportedApiAt(path: string): UnsupportedApi | undefined {
  return MOST_SPECIFIC_FIRST.find((api) => isAtOrBelow(path, api.path));
}

export function describeUnsupported({ path, name, instead }: UnsupportedApi): string {
  const refusal = `${path}: this server does not support ${name}.`;
  return instead === undefined ? refusal : `${refusal} ${instead}`;
}
