import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { Random } from "../fuzz/random.ts";
import { rpcMethods } from "../support/any-method.ts";
import { CHANGES } from "./changes.ts";
import { comparable, differencesOf } from "./comparable.ts";
import { type Draft, draftOf, type Form, formsOf, requestOf } from "./draft.ts";
import type { Exchange, WireRequest } from "./exchange.ts";
import { sendOverHttp1 } from "./http1-exchange.ts";
import { Http2Sender } from "./http2-exchange.ts";
import { anyMessageOf, anyPrompt, messageOf } from "./messages.ts";
import { DEFAULT_PROMPT, hasOutcome, labelOf, OUTCOMES, type Outcome } from "./outcomes.ts";
import type { Tenant, TwinServers, Twins } from "./twins.ts";

const WORKERS = 8;
const MAX_DIFFERENCES = 12;

/** A call, made twice: `build` makes the same request with the keys of each twin. */
type Case = {
  readonly name: string;
  readonly method: DescMethod;
  readonly form: Form;
  readonly usesUpWindows: boolean;
  readonly rounds: number;
  build(tenant: Tenant, round: number): Draft;
};

export type DifferentialResult = {
  readonly compared: number;
  /** Pairs that tell nothing: an overloaded machine made a call wait too long for the database. */
  readonly unavailable: number;
  /** How often each form of call ended in each way. */
  readonly endings: ReadonlyMap<string, number>;
  readonly differences: readonly string[];
};

/** Those whose responses do not depend on the order of the other calls, as lists of events do. */
const METHODS = rpcMethods.filter(({ parent }) => parent.name !== "EventService");

/** Every outcome of every method in every form, in an order that the seed determines. */
export function systematicCases(seed: number): Case[] {
  const random = new Random(seed);
  const cases = OUTCOMES.flatMap((outcome) =>
    METHODS.filter((method) => hasOutcome(outcome, method)).flatMap((method) =>
      formsOf(method).map((form) => systematicCase(outcome, method, form, random.below(2 ** 31))),
    ),
  );
  return shuffled(cases, random);
}

/** A sample in which each outcome occurs in each form, with methods that the seed determines. */
export function sampledCases(seed: number): Case[] {
  const seen = new Set<string>();
  return systematicCases(seed).filter(({ name, form }) => {
    const key = `${name} ${JSON.stringify(form)}`;
    return seen.has(key) ? false : seen.add(key);
  });
}

/** A call with random content and random changes. */
export function randomCase(seed: number, number: number): Case {
  const random = new Random(seed * 1_000_003 + number);
  const method = random.pick(METHODS);
  const form = random.pick(formsOf(method));
  const bodySeed = random.below(2 ** 31);
  const names = random.list(5, () => random.pick(Object.keys(CHANGES)));
  return {
    name: `random ${number} of seed ${seed}: ${names.join(", ")}`,
    method,
    form,
    usesUpWindows: false,
    rounds: 1,
    build: (tenant) => {
      const own = new Random(bodySeed);
      // Changes inside an id would make the ids of the two tenants unrecognizable.
      const known = names.includes("changedBytes") ? { ...tenant, keyId: "key_0" } : tenant;
      const message = own.chance(0.75) ? messageOf(method, anyPrompt(own), known) : anyMessageOf(method, own);
      const draft = draftOf(method, form, message, tenant.full);
      for (const name of names) CHANGES[name]?.(draft, own);
      return draft;
    },
  };
}

function systematicCase(outcome: Outcome, method: DescMethod, form: Form, seed: number): Case {
  return {
    name: outcome.name,
    method,
    form,
    usesUpWindows: outcome.usesUpWindows === true,
    rounds: outcome.secondPrompt ? 2 : 1,
    build: (tenant, round) => {
      const prompt = round === 0 ? outcome.prompt : outcome.secondPrompt;
      const message = messageOf(method, { ...DEFAULT_PROMPT, ...prompt }, tenant);
      const draft = draftOf(method, form, message, outcome.secret?.(tenant, method) ?? tenant.full);
      outcome.change?.(draft, new Random(seed));
      return draft;
    },
  };
}

/** Makes the calls of all cases on both listeners, and compares what the callers receive. */
export async function compareAll(servers: TwinServers, cases: Iterable<Case>): Promise<DifferentialResult> {
  const endings = new Map<string, number>();
  const differences: string[] = [];
  const queue = cases[Symbol.iterator]();
  let [compared, unavailable] = [0, 0];
  const worker = async () => {
    let twins = await servers.createTwins();
    const senders = servers.urls.map((url) => new Http2Sender(url));
    for (let next = queue.next(); !next.done && differences.length < MAX_DIFFERENCES; next = queue.next()) {
      const one = next.value;
      if (one.usesUpWindows) await servers.useUpWindows(twins);
      for (let round = 0; round < one.rounds; round++) {
        const [direct, connect] = await exchangeBoth(servers, senders, twins, one, round);
        const ending = endingOf(direct);
        if ([ending, endingOf(connect)].includes("unavailable")) {
          unavailable++;
          twins = await servers.createTwins();
          continue;
        }
        compared++;
        const label = labelOf(one.form, ending);
        endings.set(label, (endings.get(label) ?? 0) + 1);
        const found = differencesOf(comparable(one.method, direct), comparable(one.method, connect));
        if (found.length === 0) continue;
        differences.push([describe(one, twins[0], round), ...found].join("\n    "));
        // Balances may differ from here on.
        twins = await servers.createTwins();
      }
    }
    for (const sender of senders) sender.close();
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return { compared, unavailable, endings, differences };
}

const NOT_SENT: Exchange = { interim: [], status: 0, headers: [], body: Buffer.alloc(0), trailers: [], end: "", next: "" };

async function exchangeBoth(
  { urls }: TwinServers,
  senders: readonly Http2Sender[],
  twins: Twins,
  one: Case,
  round: number,
): Promise<[Exchange, Exchange]> {
  const exchanges = await Promise.all(
    twins.map((tenant, i) => send(urls[i] as URL, senders[i] as Http2Sender, requestOf(one.build(tenant, round)), one)),
  );
  return exchanges as [Exchange, Exchange];
}

async function send(url: URL, sender: Http2Sender, request: WireRequest, { name }: Case): Promise<Exchange> {
  try {
    return await (request.http === 1 ? sendOverHttp1(url, request) : sender.send(request));
  } catch (error) {
    // Node's client refuses to send some headers over HTTP/2.
    const { code } = error as NodeJS.ErrnoException;
    if (code?.startsWith("ERR_HTTP2_") || code === "ERR_INVALID_CHAR") return { ...NOT_SENT, end: code };
    throw new Error(`${name}: ${url}`, { cause: error });
  }
}

/** The reason of the error, or how the exchange ended. */
function endingOf({ status, headers, trailers, body, end }: Exchange): string {
  if (end !== "complete") return end;
  const lists = [...headers, ...trailers].map((header) => header.join(": "));
  const text = [...lists, body.toString("latin1")].join("\n");
  const status64 = /grpc-status-details-bin: ([\w+/]+)/.exec(text)?.[1];
  if (status64 !== undefined) {
    const { details } = fromBinary(StatusSchema, Buffer.from(status64, "base64"));
    const info = details.map((detail) => anyUnpack(detail, ErrorInfoSchema)).find((one) => one !== undefined);
    return info?.reason.toLowerCase() ?? "error";
  }
  const reason = /"type":"google\.rpc\.ErrorInfo","debug":\{"reason":"([A-Z_]+)"/.exec(text)?.[1];
  return reason?.toLowerCase() ?? String(status);
}

function describe(one: Case, tenant: Tenant, round: number): string {
  const { http, method, target, headers, body, framing } = requestOf(one.build(tenant, round));
  const sent = headers.filter(([name]) => name !== "authorization").map((header) => header.join(": "));
  const shownBody =
    body.length > 300 ? `${body.subarray(0, 300).toString("latin1")}… (${body.length} bytes)` : body.toString("latin1");
  return `${one.name}\n    HTTP/${http} ${method} ${target.slice(0, 300)} [${sent.join("; ").slice(0, 1_000)}] ${framing} ${JSON.stringify(shownBody)}`;
}

function shuffled<Item>(items: Item[], random: Random): Item[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [items[i], items[j]] = [items[j] as Item, items[i] as Item];
  }
  return items;
}
