import { userInfo } from "node:os";
import postgres from "postgres";

export type Sql = postgres.Sql<{ bigint: bigint }>;

/** Where PostgreSQL is: a URL, or the folder of a unix socket and the role to log in as. */
export type DatabaseAddress =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "socket"; readonly folder: string; readonly user: string; readonly database: string };

export type ConnectOptions = {
  readonly connections: number;
  /** PostgreSQL gives a statement up after this time. */
  readonly statementTimeoutMs: number;
  /** Shows in pg_stat_activity. */
  readonly name: string;
  /** The role to act as, where it is not the login's own. */
  readonly role?: string;
};

const CONNECT_TIMEOUT_SECONDS = 5;
const RECONNECT_SECONDS = 0.2;

export function connect(address: DatabaseAddress, options: ConnectOptions): Sql {
  const settings: Settings = {
    max: options.connections,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    backoff: () => RECONNECT_SECONDS,
    max_lifetime: null,
    fetch_types: false,
    onnotice: () => undefined,
    types: { bigint: postgres.BigInt },
    connection: {
      application_name: options.name,
      statement_timeout: options.statementTimeoutMs,
      idle_in_transaction_session_timeout: options.statementTimeoutMs,
      TimeZone: "UTC",
      jit: "off",
      ...(options.role ? { role: options.role } : {}),
    },
  };
  if (address.kind === "url") return connectUrl(address.url, settings);
  return postgres({
    ...settings,
    host: address.folder,
    port: 5432,
    user: address.user,
    database: address.database,
  });
}

type Settings = postgres.Options<{ bigint: postgres.PostgresType<bigint> }>;

/** PostgreSQL's URLs may leave the host out; those of the web may not. */
export function withHost(url: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?=[/?#]|$)/, "$1localhost");
}

/** As libpq reads it, "?host=/folder" names the folder of a unix socket; the driver does not know that form. */
function connectUrl(text: string, settings: Settings): Sql {
  const url = new URL(withHost(text));
  const folder = url.searchParams.get("host");
  if (!folder?.startsWith("/")) return postgres(text, settings);
  return postgres({
    ...settings,
    host: folder,
    port: Number(url.port || url.searchParams.get("port") || 5432),
    user: decodeURIComponent(url.username || url.searchParams.get("user") || userInfo().username),
    password: decodeURIComponent(url.password || url.searchParams.get("password") || ""),
    database: decodeURIComponent(url.pathname.slice(1)) || "postgres",
  });
}
