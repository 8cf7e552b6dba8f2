import { randomBytes } from "node:crypto";
import { generateSessionToken } from "../domain/operator-token.ts";
import { SessionAuthentication } from "../server/gate/authenticate-session.ts";
import type { FailedAuthentications } from "../server/gate/failed-authentications.ts";
import { OidcClient } from "../server/sign-in/oidc-client.ts";
import type { SignIn } from "../server/sign-in/sign-in-pages.ts";
import type { Cells } from "../store/driver/cells.ts";
import { endSession, findSession, signInOperator } from "../store/operator-sessions.ts";
import type { Log } from "../telemetry/log.ts";
import type { Config } from "./config.ts";

type SignInParts = {
  readonly config: Config;
  readonly database: Cells;
  readonly failures: FailedAuthentications;
  readonly log: Log;
};

/** Undefined without the settings of OpenID Connect. */
export function createSignIn({ config, database, failures, log }: SignInParts): SignIn | undefined {
  const { oidc, adminUrl: url } = config;
  if (!oidc) return undefined;
  const isSecure = url === undefined ? config.adminTls !== undefined : url.startsWith("https:");
  return {
    provider: new OidcClient(oidc, Date.now),
    sessions: new SessionAuthentication({
      url,
      isSecure,
      find: (fingerprint, isUse) => findSession(database, fingerprint, isUse),
      failures,
    }),
    url,
    isSecure,
    newToken: () => generateSessionToken(randomBytes),
    start: (identity, fingerprint, requestId) => signInOperator(database, identity, fingerprint, requestId),
    end: (fingerprint, requestId) => endSession(database, fingerprint, requestId),
    failures,
    log,
  };
}
