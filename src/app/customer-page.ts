import { randomBytes } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { type BoundService, type Deps, withDeps } from "../api/define-service.ts";
import { CallRate } from "../domain/call-rate.ts";
import { fingerprintOf, generateSessionToken, isWellFormedSessionToken } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import type { AddressRanges } from "../domain/network.ts";
import { accountPageService } from "../members/service.ts";
import { type Browser, findMember, findPageSession, type PageSession, signInPerson, usePageLink } from "../members/store.ts";
import { actionOf, recordRefusal } from "../operators/operator-action.ts";
import type { Identity } from "../operators/store.ts";
import { SMALL_BODY_BYTES } from "../rules/body-limits.ts";
import { memberPoliciesOf } from "../rules/policy.ts";
import { prepareValidation } from "../rules/validate.ts";
import { type Credentials, credentialsOf } from "../server/call.ts";
import { connectRpcs } from "../server/connect/connect-rpcs.ts";
import { bearerCredential } from "../server/credentials/bearer.ts";
import type { FailedAuthentications } from "../server/credentials/failed-authentications.ts";
import { SessionAuthentication } from "../server/credentials/session-authentication.ts";
import { clientAddress, type ServePath, sendJson } from "../server/http/message.ts";
import type { MemberAuthentication } from "../server/interceptors/authenticate-member.ts";
import type { Serve } from "../server/interceptors/interceptor.ts";
import { OidcClient } from "../server/sign-in/oidc-client.ts";
import { setSession, signInPages } from "../server/sign-in/sign-in-pages.ts";
import { rpcMethods } from "../server/wire/rpc.ts";
import type { Log } from "../telemetry/log.ts";
import { createDemoOwner } from "./demo-owner.ts";
import type { Config } from "./settings/config.ts";

const MAX_USER_AGENT = 300;
const SESSION_SECONDS = 30 * 86_400;
const VIEW_SECONDS = 3_600;
/** Of each session. */
const MAX_CALLS_PER_MINUTE = 600;

type CustomerPageOptions = {
  readonly config: Config;
  readonly deps: Deps;
  /** The developer API: members call the methods whose policy says so. */
  readonly services: readonly BoundService[];
  readonly log: Log;
  readonly failures: FailedAuthentications;
  readonly serveMembers: (authentication: MemberAuthentication) => Serve;
};

/** What the customer page needs besides its files: its service, and the paths that start sessions. */
export function createCustomerPage({ config, deps, services, log, failures, serveMembers }: CustomerPageOptions) {
  const { database, ids } = deps;
  const isSecure = config.publicUrl.startsWith("https:");
  const url = config.isPublicUrlSet ? config.publicUrl : undefined;
  const { service } = accountPageService;
  const browserOf = (credentials: Credentials) => browserOfRequest(credentials, config.trustedProxies);
  const sessions = new SessionAuthentication({
    cookie: { name: "vx_account", path: `/${service.typeName}` },
    url,
    isSecure,
    refusal: "invalid_session",
    find: (fingerprint) => findPageSession(database, fingerprint),
    failures,
  });
  const startSession = (identity: Identity, fingerprint: string, credentials: Credentials) =>
    signInPerson(database, identity, { person: ids.person(), session: ids.pageSession() }, fingerprint, browserOf(credentials));
  const demo = createDemoOwner({
    config,
    deps,
    startSession,
    requireSameOrigin: (credentials) => sessions.requireSameOrigin(credentials),
    setSession: (response, token) => setSession(response, { isSecure, sessions }, token, SESSION_SECONDS),
  });
  const serve = serveMembers({
    sessions,
    isDemoOwnerAllowed: (call) => demo?.isOffered(call) === true,
    findMember: (accountId, person) => findMember(database, accountId, person),
    rate: new CallRate(MAX_CALLS_PER_MINUTE, Date.now),
    logRefusal: (call, actor, error) => recordRefusal(deps, actionOf(actor, call.method.name, call.requestId, {}), error),
  });
  prepareValidation([service]);
  const own = withDeps(accountPageService, { ...deps, signUp: config.signUp, now: Date.now });
  const signIn =
    config.customerOidc &&
    ({
      provider: new OidcClient(config.customerOidc, Date.now),
      sessions,
      page: { path: "/account", name: "account page", credential: "an API key" },
      path: "/account/auth",
      sessionSeconds: SESSION_SECONDS,
      url,
      isSecure,
      newToken: () => generateSessionToken(randomBytes),
      start: (identity, fingerprint, _requestId, credentials) => startSession(identity, fingerprint, credentials),
      failures,
      log,
    } satisfies Parameters<typeof signInPages>[0]);

  return {
    rpcs: memberRpcs(serve, own, services),
    pages: new Map<string, ServePath>([
      ...(signIn ? signInPages(signIn) : []),
      ...(demo ? [["/account", demo.page] as const] : []),
    ]),
    posts: new Map([
      ["/account/auth/view", viewLinks({ database, sessions, isSecure, browserOf, failures })],
      ...(demo ? [["/account/auth/demo", demo.signIn] as const] : []),
    ]),
  };
}

/** The methods that members may call, all under the path of the page's service: browsers send the cookie of a session to no other. */
function memberRpcs(serve: Serve, own: BoundService, others: readonly BoundService[]): Map<string, ServePath> {
  const services = [own, ...others];
  const policies = memberPoliciesOf(services.map(({ service }) => service));
  const allowed = services.map(({ service, methods }) => ({
    service,
    methods: Object.fromEntries(Object.entries(methods).filter(([name]) => policies.has(service.method[name] as DescMethod))),
  }));
  const start = `/${own.service.typeName}`;
  const rpcs = connectRpcs(serve, rpcMethods(allowed, { policies, maxBodyBytes: SMALL_BODY_BYTES }));
  return new Map([...rpcs].map(([path, servePath]) => [path.startsWith(`${start}/`) ? path : start + path, servePath]));
}

type ViewLinksOptions = Pick<CustomerPageOptions, "failures"> & {
  readonly database: Deps["database"];
  readonly sessions: SessionAuthentication<PageSession>;
  readonly isSecure: boolean;
  readonly browserOf: (credentials: Credentials) => Browser;
};

/** Starts the session of an operator from the link to the page: the token is in the header, because addresses are logged. */
function viewLinks({ database, sessions, isSecure, browserOf, failures }: ViewLinksOptions): ServePath {
  return async (request, response) => {
    const credentials = credentialsOf(request);
    sessions.requireSameOrigin(credentials);
    const link = bearerCredential(credentials);
    failures.refuseBlocked(credentials.remoteAddress, fingerprintOf(link));
    const token = generateSessionToken(randomBytes);
    const isValid =
      isWellFormedSessionToken(link) &&
      (await usePageLink(database, fingerprintOf(link), fingerprintOf(token), browserOf(credentials)));
    if (!isValid) {
      failures.addFailure(credentials.remoteAddress, fingerprintOf(link));
      throw new DomainError("invalid_session", { message: "The link was used or has expired." });
    }
    setSession(response, { isSecure, sessions }, token, VIEW_SECONDS);
    sendJson(response, 200, "{}");
  };
}

function browserOfRequest(credentials: Credentials, trustedProxies: AddressRanges | undefined): Browser {
  const [userAgent = ""] = credentials.headers("user-agent");
  return {
    userAgent: userAgent.replace(/\p{Cc}/gu, " ").slice(0, MAX_USER_AGENT),
    address: clientAddress(credentials, trustedProxies),
  };
}
