import { KEY_PREFIX } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Call } from "../call.ts";

/** A key as it was sent, not yet checked, and its header. */
export type SentKey = { readonly value: string; readonly header: "Authorization" | "x-api-key" };

/** The key of a call. Where the header `x-api-key` is accepted, a Bearer token applies if both are sent. */
export function sentKeyOf(call: Pick<Call, "target" | "headers" | "acceptsKeyHeader">): SentKey {
  if (!call.acceptsKeyHeader || call.headers("authorization").length > 0)
    return { value: bearerCredential(call), header: "Authorization" };
  refuseKeyInAddress(call);
  const [value, ...others] = call.headers("x-api-key");
  if (value === undefined) {
    throw new DomainError("missing_api_key", {
      message: "No API key was sent. Send it in the header 'Authorization: Bearer <API_KEY>' or 'x-api-key: <API_KEY>'.",
    });
  }
  if (others.length > 0) {
    throw new DomainError("invalid_api_key", { message: "The call has more than one header 'x-api-key'." });
  }
  return { value: value.trim(), header: "x-api-key" };
}

/** The credential of the call's one Authorization header. */
export function bearerCredential(call: Pick<Call, "target" | "headers">): string {
  refuseKeyInAddress(call);
  const [header, ...others] = call.headers("authorization");
  if (header === undefined) throw missingKey(call);
  if (others.length > 0) {
    throw new DomainError("invalid_api_key", { message: "The call has more than one Authorization header." });
  }
  const match = /^bearer +([^ ]+) *$/i.exec(header);
  if (!match?.[1]) {
    throw new DomainError("invalid_api_key", {
      message: "The Authorization header must read 'Bearer <API_KEY>'.",
    });
  }
  return match[1];
}

function refuseKeyInAddress(call: Pick<Call, "target">): void {
  if (call.target.includes(KEY_PREFIX)) {
    throw new DomainError("invalid_api_key", {
      message:
        "An API key in the address is stored in logs and histories: revoke it, and send a new key in the header 'Authorization: Bearer <API_KEY>'.",
    });
  }
}

/** Anthropic's clients send their key in another header by default. */
function missingKey(call: Pick<Call, "headers">): DomainError {
  if (call.headers("x-api-key").length === 0) return new DomainError("missing_api_key");
  return new DomainError("missing_api_key", {
    message:
      "The header 'x-api-key' is not supported. Send the API key in the header 'Authorization: Bearer <API_KEY>': with Anthropic's SDKs and tools, set ANTHROPIC_AUTH_TOKEN, or the option authToken or auth_token, in place of the API key. Below the base URL of this server followed by /anthropic, 'x-api-key' is accepted.",
  });
}
