// A process that sends bursts of large requests: node send-bursts.ts <JSON of Bursts>. Prints the number of answers
// with each status. It is a process of its own, so that sending does not delay the caller that is measured.

import { request as httpRequest } from "node:http";
import { connect, constants } from "node:http2";
import { Random } from "../../fuzz/random.ts";
import { drawRequest, drawWork, type LargeRequest } from "./large-requests.ts";

export type Bursts = {
  readonly url: string;
  /** Keys of different accounts. */
  readonly secrets: readonly string[];
  readonly seed: number;
  readonly bursts: number;
  /** Requests that need much memory, or much time. */
  readonly kind: "memory" | "work";
  /** The requests of one burst, sent at the same time. */
  readonly concurrent: number;
};

const PATIENCE_MS = 120_000;
/** The kinds of requests in one burst. */
const KINDS = 6;
/** One caller in this many leaves before its answer. */
const LEAVING = 8;
const LEAVE_MS = 700;

const { url, secrets, seed, bursts, kind: kindOfBursts, concurrent } = JSON.parse(process.argv[2] ?? "{}") as Bursts;
const random = new Random(seed);
const statuses = new Map<string, number>();
for (let burst = 0; burst < bursts; burst++) {
  const kinds = Array.from({ length: random.chance(0.5) ? 1 : KINDS }, () =>
    kindOfBursts === "work" ? drawWork(random) : drawRequest(random),
  );
  const sent = Array.from({ length: concurrent }, (_, i) => {
    const kind = kinds[i % kinds.length] as LargeRequest;
    const secret = secrets[i % secrets.length] as string;
    const headers: Record<string, string> = { ...kind.headers, authorization: `Bearer ${secret}` };
    // Each call runs: none is a retry of another one.
    if (headers["idempotency-key"]) headers["idempotency-key"] += `-${seed}-${burst}-${i}`;
    const leaves = random.below(LEAVING) === 0;
    return kind.isHttp2 ? overHttp2(kind, headers, leaves) : overHttp1(kind, headers, leaves);
  });
  for (const status of await Promise.all(sent)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  console.error(`burst ${burst + 1}: ${kinds.map(({ name }) => name).join(" | ")}`);
}
console.log(JSON.stringify(Object.fromEntries(statuses)));
process.exit(0);

function overHttp1({ path, body }: LargeRequest, headers: object, leaves: boolean): Promise<string> {
  return new Promise((resolve) => {
    const call = httpRequest(
      url + path,
      { method: "POST", agent: false, headers: { ...headers, "content-length": body.length } },
      (answer) => {
        answer.resume();
        answer.once("close", () => resolve(String(answer.statusCode)));
      },
    );
    call.setTimeout(PATIENCE_MS, () => call.destroy());
    call.once("error", () => resolve("closed"));
    if (leaves) setTimeout(() => call.destroy(), LEAVE_MS);
    call.end(body);
  });
}

function overHttp2({ path, body }: LargeRequest, headers: object, leaves: boolean): Promise<string> {
  return new Promise((resolve) => {
    const session = connect(url);
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    let status = "closed";
    // Node never closes a stream whose response is complete while it still has to send a part of the request.
    const finish = () => {
      session.destroy();
      resolve(status);
    };
    session.once("error", finish);
    session.setTimeout(PATIENCE_MS, finish);
    stream.once("response", (head) => {
      status = `gRPC ${head["grpc-status"] ?? "?"}`;
    });
    stream.once("trailers", (trailers) => {
      status = `gRPC ${trailers["grpc-status"]}`;
    });
    stream.on("error", () => undefined);
    stream.once("end", finish);
    stream.once("close", finish);
    if (leaves) setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), LEAVE_MS);
    stream.resume();
    stream.end(body);
  });
}
