import { hash, type KeyObject, verify } from "node:crypto";
import { readBytes } from "../codec/body.ts";
import type { BodyBudget } from "../codec/body-budget.ts";
import { fingerprintOf, isWellFormedKey, laneOfKey, redactKeys } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { jsonIfValid } from "../domain/json.ts";
import type { Leak, LeakedKey } from "../keys/store.ts";
import type { Log } from "../telemetry/log.ts";
import { type HttpRequest, type ServePath, sendJson } from "./http/message.ts";

const MAX_BODY_BYTES = 1_048_576;
const MAX_TOKENS = 500;

/** One token of a report of the secret scanning partner programme. */
type Finding = {
  readonly token: string;
  readonly type: string;
  readonly url?: string | null;
  readonly source?: string | null;
};

type Options = {
  /** The public key of those who may report, by its identifier. */
  readonly keyOf: (identifier: string) => KeyObject | undefined;
  readonly budget: BodyBudget;
  readonly report: (
    leaks: readonly Leak[],
    by: { readonly identifier: string; readonly requestId: string },
  ) => Promise<LeakedKey[]>;
  readonly log: Log;
};

/** POST /leaks: revokes the keys in a signed report and says which of its tokens are keys of this server. */
export function leakReports(options: Options): ServePath {
  return async (request, response, requestId) => {
    const share = options.budget.openShare(undefined);
    try {
      const { keyOf, report, log } = options;
      signatureOf(request, keyOf);
      const body = await readBytes(request, { maxBytes: MAX_BODY_BYTES, share, bodyMs: share.bodyMs });
      // Again: the key may have been removed while the body arrived.
      const signature = signatureOf(request, keyOf);
      if (!verify("sha256", body, signature.key, signature.bytes))
        throw forbidden("The signature in Github-Public-Key-Signature does not match the body.");
      const findings = findingsOf(body);
      const { identifier } = signature;
      const leaked = await report(leaksOf(findings), { identifier, requestId });
      const known = new Set(leaked.map(({ fingerprint }) => fingerprint));
      const revoked = leaked.reduce((sum, { revoked_keys: keys }) => sum + keys, 0);
      log.info(
        { request_id: requestId, tokens: findings.length, known: known.size, revoked_keys: revoked },
        "received a leak report",
      );
      sendJson(response, 200, JSON.stringify(findings.map((finding) => answerOf(finding, known))));
    } finally {
      share.release();
    }
  };
}

function signatureOf({ headers }: HttpRequest, keyOf: Options["keyOf"]) {
  const identifier = headers["github-public-key-identifier"];
  const signature = headers["github-public-key-signature"];
  if (typeof identifier !== "string" || typeof signature !== "string")
    throw forbidden("The headers Github-Public-Key-Identifier and Github-Public-Key-Signature are required.");
  const key = keyOf(identifier);
  if (!key) throw forbidden("The key that Github-Public-Key-Identifier names may not report leaks.");
  return { identifier, key, bytes: Buffer.from(signature, "base64") };
}

function forbidden(message: string): DomainError {
  return new DomainError("invalid_report_signature", { message });
}

function findingsOf(body: Buffer): readonly Finding[] {
  const report = jsonIfValid(body);
  if (Array.isArray(report) && report.length <= MAX_TOKENS && report.every(isFinding)) return report;
  throw new DomainError("invalid_argument", {
    message: `The body must be a JSON array of at most ${MAX_TOKENS} objects with the texts token, type, url and source.`,
  });
}

function isFinding(item: unknown): item is Finding {
  const { token, type, url, source } = Object(item) as Record<string, unknown>;
  const isOptional = (value: unknown) => typeof value === "string" || value === undefined || value === null;
  return typeof token === "string" && typeof type === "string" && isOptional(url) && isOptional(source);
}

function leaksOf(findings: readonly Finding[]): readonly Leak[] {
  return findings
    .filter(({ token }) => isWellFormedKey(token))
    .map(({ token, url, source }) => ({
      lane: laneOfKey(token),
      fingerprint: fingerprintOf(token),
      reason: plain(`${url ?? "unknown place"} (${source ?? "unknown source"})`),
    }));
}

/** Text from outside for the operator log: bounded, without keys and without characters that control a terminal. */
function plain(text: string): string {
  return redactKeys(text)
    .replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, "\u{fffd}")
    .slice(0, 500)
    .toWellFormed();
}

function answerOf({ token, type }: Finding, known: ReadonlySet<string>) {
  return {
    token_hash: hash("sha256", token, "base64"),
    token_type: type,
    label: known.has(fingerprintOf(token)) ? "true_positive" : "false_positive",
  };
}
