import { type FuzzAnswer, faultOf } from "./answers.ts";
import { RawConnection } from "./http1.ts";
import { Session } from "./http2.ts";
import { Random } from "./random.ts";
import { anyRequest, type FuzzRequest } from "./requests.ts";
import type { FuzzServer } from "./server.ts";

const CALLERS = 16;
const MAX_FAULTS = 20;

export type FuzzResult = {
  readonly sent: number;
  /** The number of responses by status; "none" for requests without a response. */
  readonly statuses: ReadonlyMap<string, number>;
  /** The number of successful calls of each kind: requests that the gate rejects test little. */
  readonly reached: ReadonlyMap<string, number>;
  readonly faults: readonly string[];
};

/** Sends this many requests, each determined by seed and number, and returns the responses that violate a rule. */
export async function fuzz(
  server: FuzzServer,
  seed: number,
  requests: number,
  deadline = Number.POSITIVE_INFINITY,
): Promise<FuzzResult> {
  const statuses = new Map<string, number>();
  const reached = new Map<string, number>();
  const faults: string[] = [];
  let sent = 0;
  const caller = async () => {
    const [connection, session] = [new RawConnection(server.url), new Session(server.url)];
    while (sent < requests && faults.length < MAX_FAULTS && performance.now() < deadline) {
      const number = sent++;
      const random = new Random(seed * 1_000_003 + number);
      const request = anyRequest(random, server.secret);
      try {
        const answer = await (request.http === 1 ? connection.send(request, random) : session.send(request));
        const status = String(answer?.status ?? "none");
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (answer?.status === 200) {
          const sort = sortOf(request, answer);
          reached.set(sort, (reached.get(sort) ?? 0) + 1);
        }
        const fault = answer && faultOf(request, answer);
        if (fault !== undefined)
          faults.push(`${fault}: ${describe(request, number)}\n  ${answer?.body.toString().slice(0, 300)}`);
      } catch (error) {
        connection.close();
        faults.push(`${(error as Error).message}: ${describe(request, number)}`);
      }
    }
    connection.close();
    session.close();
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  faults.push(...(await faultsOfServer(server)));
  return { sent, statuses, reached, faults };
}

async function faultsOfServer(server: FuzzServer): Promise<string[]> {
  const faults = [];
  if (server.exitCode() !== null) faults.push(`the server ended with ${server.exitCode()}`);
  else if ((await fetch(`${server.url}/livez`)).status !== 200) faults.push("/livez is not fine");
  else faults.push(...(await server.auditFindings()));
  const logged = /.*(?:uncaught|unhandled|request failed|call failed).*/i.exec(server.logText());
  if (logged) faults.push(`in the log: ${logged[0].slice(0, 1_000)}`);
  if (server.logText().includes(server.secret)) faults.push("the key is in the log");
  return faults;
}

function sortOf({ method, target }: FuzzRequest, { headers }: FuzzAnswer): string {
  const [path = ""] = target.split("?");
  const streamed = headers["content-type"] === "text/event-stream" ? " streamed" : "";
  return `${method} ${path.startsWith("/v1") ? path : "elsewhere"}${streamed}`;
}

function describe(request: FuzzRequest, number: number): string {
  const { http, method, target, headers, body, broken } = request;
  const shown = headers.filter(([name]) => name !== "authorization").map((header) => header.join(": "));
  const text = body === undefined ? "" : ` ${body.length} bytes ${JSON.stringify(body.toString().slice(0, 200))}`;
  return `request ${number}, HTTP/${http}${broken ? " broken" : ""} ${method} ${target} [${shown.join(", ")}]${text}`;
}
