import { getOption } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { policy, Role as RoleNumber } from "../../gen/vx/options/v1/options_pb.js";
import { ROLES, type Role } from "../../src/domain/operator.ts";
import { createSession } from "../shared/session.ts";

export type AdminClient = Client<typeof AdminService>;

export type AdminMethod = keyof typeof AdminService.method;

/** A signed-in operator. */
export type OperatorSession = {
  readonly api: AdminClient;
  /** Streams. */
  readonly live: Client<typeof ConsoleService>;
  readonly operator: { readonly id: string; readonly name: string; readonly role: string };
  /** The session is a cookie, not a token that was typed. */
  readonly isCookie: boolean;
};

type SessionState = {
  readonly operator: OperatorSession["operator"] | null;
  /** Whether operators can sign in with OpenID Connect. */
  readonly openid_connect: boolean;
};

/** What the server says about a token, or about the cookie of the browser. Throws if it does not accept the token. */
export async function readSession(token?: string): Promise<SessionState> {
  const response = await fetch("/auth/session", {
    cache: "no-store",
    redirect: "error",
    ...(token === undefined
      ? { credentials: "same-origin" }
      : { credentials: "omit", headers: { authorization: `Bearer ${token}` } }),
  });
  const body = (await response.json()) as SessionState & { readonly error?: { readonly message: string } };
  if (response.ok) return body;
  const code = response.status === 401 ? Code.Unauthenticated : Code.Unavailable;
  throw new ConnectError(body.error?.message ?? response.statusText, code, response.headers);
}

/** Ends the session of the cookie. Returns whether the server ended it. */
export async function endSession(): Promise<boolean> {
  const options = { method: "POST", credentials: "same-origin" } as const;
  return await fetch("/auth/sign-out", options).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** The session of a token, or of the cookie of the browser; undefined if there is no session in the cookie. */
export function sessionOf(
  { operator }: SessionState,
  token: string | undefined,
  onEnd: (message: string) => void,
): OperatorSession | undefined {
  if (operator === null) return undefined;
  const transport = createSession(token, onEnd);
  return {
    api: createClient(AdminService, transport),
    live: createClient(ConsoleService, transport),
    operator,
    isCookie: token === undefined,
  };
}

const SessionContext = createContext<OperatorSession | undefined>(undefined);

export const SessionProvider = SessionContext.Provider;

export function useSession(): OperatorSession {
  const session = useContext(SessionContext);
  if (!session) throw new Error("no operator is signed in");
  return session;
}

export function useApi(): AdminClient {
  return useSession().api;
}

/** Why the operator may not call a method; undefined if the operator may. */
export function refusalOf({ operator }: OperatorSession, method: AdminMethod): string | undefined {
  const needed = roleOf(AdminService.method[method]);
  if (ROLES.indexOf(operator.role as Role) >= ROLES.indexOf(needed)) return undefined;
  return `This needs the role “${needed}”. Your role is “${operator.role}”.`;
}

/** The lowest role that may call a method, as the .proto declares it. */
export function roleOf(method: (typeof AdminService.method)[AdminMethod]): Role {
  const { role } = getOption(method, policy);
  return ROLES.find((name) => RoleNumber[role] === name.toUpperCase()) ?? "admin";
}
