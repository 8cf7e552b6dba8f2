import { randomBytes } from "node:crypto";
import type { Deps } from "../api/define-service.ts";
import { fingerprintOf, generateSessionToken } from "../domain/credentials.ts";
import { DEMO_OWNER } from "../domain/demo-owner.ts";
import { DomainError } from "../domain/errors.ts";
import { isLoopbackHost } from "../domain/network.ts";
import { type Credentials, credentialsOf } from "../server/call.ts";
import { hostsOf } from "../server/credentials/session-authentication.ts";
import { type ServePath, sendJson } from "../server/http/message.ts";
import { consolePages } from "../server/pages/console-pages.ts";
import { isDemoOwnerOffered } from "./seed-demo.ts";
import type { Config } from "./settings/config.ts";

/** Headers with which proxies forward the requests of other machines. */
const FORWARDING = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-real-ip",
];

type DemoOwnerOptions = {
  readonly config: Config;
  readonly deps: Deps;
  /** Starts the session of a person in the browser that the response goes to. */
  readonly startSession: (identity: typeof DEMO_OWNER, fingerprint: string, credentials: Credentials) => Promise<unknown>;
  readonly requireSameOrigin: (credentials: Credentials) => void;
  readonly setSession: (response: Parameters<ServePath>[1], token: string) => void;
};

/**
 * The sign-in of the owner of the demo account, who needs no credential, so that an evaluator sees what members see. It exists only on
 * a server for trials, and only for requests of this machine itself: each call of such a session is checked like the sign-in.
 * Undefined if the settings exclude it.
 */
export function createDemoOwner(options: DemoOwnerOptions) {
  const { config, deps, startSession, requireSameOrigin, setSession } = options;
  if (!config.allowsDemoOwner) return undefined;
  const isOffered = (request: Credentials) =>
    isDemoOwnerOffered(config, deps.catalog) &&
    hostsOf(request).every((host) => isLoopbackHost(host.replace(/:\d+$/, ""))) &&
    FORWARDING.every((name) => request.headers(name).length === 0);
  const signIn: ServePath = async (request, response) => {
    const credentials = credentialsOf(request);
    if (!isOffered(credentials)) throw new DomainError("not_found");
    requireSameOrigin(credentials);
    const token = generateSessionToken(randomBytes);
    await startSession(DEMO_OWNER, fingerprintOf(token), credentials);
    setSession(response, token);
    sendJson(response, 200, "{}");
  };
  const pageOf = (offersDemo: boolean) =>
    new Map(consolePages("account", "/account", { ...config.product, offersDemo })).get("/account");
  const [offering, plain] = [pageOf(true), pageOf(false)];
  const page: ServePath = (request, response, requestId) =>
    (isOffered(credentialsOf(request)) ? offering : plain)?.(request, response, requestId);
  return { isOffered, page, signIn };
}
