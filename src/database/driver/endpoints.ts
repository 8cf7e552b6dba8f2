import { connect, type Socket } from "node:net";
import { join } from "node:path";
import type postgres from "postgres";

/** What stores a cell: one PostgreSQL server, or a Citus cluster that has the schema of the cell on one of its workers. */
export const ENGINES = ["postgresql", "citus"] as const;
export type Engine = (typeof ENGINES)[number];

/** Address of PostgreSQL: a URL, or the folder of a unix socket and the role to log in as. */
export type DatabaseAddress =
  | { readonly kind: "url"; readonly url: string }
  | {
      readonly kind: "socket";
      readonly folder: string;
      readonly user: string;
      readonly password?: string;
      readonly database: string;
    };

/** One PostgreSQL server to connect to. */
export type Endpoint = {
  readonly name: string;
  /** Settings that the driver reads from a URL: TLS and session parameters. */
  readonly driverUrl: string;
  readonly login: Login;
  dial(): Socket;
};

type Login = Pick<postgres.Options<never>, "host" | "port" | "user" | "password" | "database" | "ssl">;

const USUAL_PORT = 5432;
const URL_FORM = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;
const HOST_FORM = /^(?:\[([^\]]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/;
/** Parsed here, because the driver would send them to the server. */
const OWN_PARAMETERS = ["host", "port", "user", "password", "dbname", "target_session_attrs"];

/** The mistake in a URL, in words for the operator; undefined for a valid URL. */
export function databaseUrlProblem(url: string): string | undefined {
  try {
    parseUrl(url);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The servers of an address, in the order of connection attempts. */
export function endpointsOf(address: DatabaseAddress): Endpoint[] {
  if (address.kind === "url") return parseUrl(address.url);
  return [socketEndpoint(address.folder, USUAL_PORT, socketLogin(address), "")];
}

/** Another server with the login and settings of the address. */
export function endpointAt(address: DatabaseAddress, host: string, port: number): Endpoint {
  const { login, driverUrl } = address.kind === "url" ? partsOf(address.url) : { login: socketLogin(address), driverUrl: "" };
  return tcpEndpoint(host, port, login, driverUrl);
}

function socketLogin({ user, password, database }: DatabaseAddress & { kind: "socket" }): Login {
  return { user, database, ...(password && { password }) };
}

function parseUrl(url: string): Endpoint[] {
  const { login, driverUrl, hosts } = partsOf(url);
  return hosts.map(({ host, port }) =>
    host.startsWith("/") ? socketEndpoint(host, port, login, driverUrl) : tcpEndpoint(host, port, login, driverUrl),
  );
}

type Host = { readonly host: string; readonly port: number };

function partsOf(url: string): { readonly login: Login; readonly driverUrl: string; readonly hosts: readonly Host[] } {
  const [whole, userInfo = "", authority = "", path = "", query = ""] = URL_FORM.exec(url) ?? [];
  if (whole === undefined) {
    throw new Error(
      "is not a valid URL of the form postgres://user:password@host:port/database; characters such as / ? # in a password are written %2F %3F %23",
    );
  }
  const parameters = new URLSearchParams(query);
  refuseReadOnlyTarget(parameters.get("target_session_attrs"));
  const login = loginOf(userInfo, path, parameters);
  const hosts = hostsOf(authority, parameters);
  for (const name of OWN_PARAMETERS) parameters.delete(name);
  return { login, driverUrl: `postgres://localhost/?${parameters}`, hosts };
}

/** The server writes in every call, so it accepts only connections that can write. */
function refuseReadOnlyTarget(target: string | null): void {
  if (target === null || ["any", "read-write", "primary"].includes(target)) return;
  throw new Error(`has target_session_attrs=${target}, but the server needs a database it can write to`);
}

function loginOf(userInfo: string, path: string, parameters: URLSearchParams): Login {
  const colon = userInfo.indexOf(":");
  const user = decode(colon < 0 ? userInfo : userInfo.slice(0, colon)) || parameters.get("user");
  const password = (colon < 0 ? "" : decode(userInfo.slice(colon + 1))) || parameters.get("password");
  const database = decode(path) || parameters.get("dbname");
  return { ...(user && { user }), ...(password && { password }), ...(database && { database }) };
}

/** Hosts are separated by commas. Each has its own port, or all share one. */
function hostsOf(authority: string, parameters: URLSearchParams): Host[] {
  const ports = (parameters.get("port") ?? "").split(",");
  const names = parameters.get("host")?.split(",");
  const places = names
    ? names.map((host) => ({ host, port: undefined }))
    : authority.split(",").map((text) => {
        const [whole, address, name, port] = HOST_FORM.exec(text) ?? [];
        if (whole === undefined) throw new Error(`has a host and port that cannot be read: ${text}`);
        return { host: decode(address ?? name ?? ""), port };
      });
  return places.map(({ host, port }, i) => ({
    host: host || "localhost",
    port: portOf(port ?? (ports.length === 1 ? ports[0] : ports[i]) ?? ""),
  }));
}

function portOf(text: string): number {
  const port = text === "" ? USUAL_PORT : Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`has no valid port: ${text}`);
  return port;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error("has a % that is not followed by two hexadecimal digits of UTF-8; a % itself is written %25");
  }
}

function socketEndpoint(folder: string, port: number, login: Login, driverUrl: string): Endpoint {
  const path = join(folder, `.s.PGSQL.${port}`);
  return {
    name: path,
    driverUrl,
    // PostgreSQL has no TLS on a unix socket.
    login: { ...login, host: folder, port, ssl: false },
    dial: () => connect({ path }),
  };
}

function tcpEndpoint(host: string, port: number, login: Login, driverUrl: string): Endpoint {
  return {
    name: `${host}:${port}`,
    driverUrl,
    login: { ...login, host, port },
    // The driver reads host and port from the socket, for the certificate check and for error messages.
    dial: () => Object.assign(connect({ host, port }), { host, port }),
  };
}
