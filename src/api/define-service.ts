import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { AuditReport } from "../audit/store.ts";
import type { Action, Actor } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import type { NewKey } from "../domain/credentials.ts";
import type { DomainError } from "../domain/errors.ts";
import type { Ids } from "../domain/ids.ts";
import type { Lane } from "../domain/lane.ts";
import type { MemberRole } from "../domain/member.ts";
import type { Operator } from "../domain/operator.ts";
import type { EventWatch } from "../events/watch.ts";
import type { GenerationRequest, PieceStream, Reply } from "../generations/generation-request.ts";
import type { Meter } from "../generations/meter.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { PageSession } from "../members/store.ts";
import type { Catalog } from "../models/catalog.ts";
import type { DecodeTokens } from "../openai/token-texts.ts";
import type { TopUps } from "../payments/top-ups.ts";
import type { PriceLists } from "../prices/store.ts";
import { type MemberCheck, type MemberTable, memberCheck } from "../rules/request-members.ts";
import type { Deliverer } from "../webhooks/deliverer.ts";

export type ServiceDeps = Deps & { readonly meter: Meter };

/** A method: a function, or the two functions of a method that generates. */
type Method<Needs, Request, Result, Response> =
  | ((deps: Needs, request: Request, call: ApiCall) => Response)
  | Metered<Needs, Request, Result, Awaited<Response>>;

/** A method that generates. Between its two functions, the server holds the cost, runs the generation and charges it. */
type Metered<Needs, Request, Result, Response> = {
  /** Throws a 400 for a request that cannot be run. */
  readonly prompt: (deps: Needs, request: Request, call: ApiCall) => GenerationRequest | Promise<GenerationRequest>;
  readonly respond: (result: Result, request: Request, prompt: GenerationRequest) => Response;
};

/** The methods of a service, independent of the protocol. Each method is required. */
type MethodsOf<Service extends DescService, Needs> = {
  [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<infer Input, infer Output>
    ? Method<Needs, MessageShape<Input>, Reply, Promise<MessageInitShape<Output>>>
    : Service["method"][Name] extends DescMethodServerStreaming<infer Input, infer Output>
      ? Method<Needs, MessageShape<Input>, PieceStream, AsyncIterable<MessageInitShape<Output>>>
      : never;
};

type AnyMethod<Needs> = ((deps: Needs, request: never, call: ApiCall) => unknown) | Metered<Needs, never, never, unknown>;

/** A method without its types, as servers call it. */
export type BoundMethod =
  | ((request: never, call: ApiCall) => unknown)
  | {
      readonly prompt: (request: never, call: ApiCall) => GenerationRequest | Promise<GenerationRequest>;
      readonly respond: (result: never, request: never, prompt: GenerationRequest) => unknown;
    };

/** What is checked before the rules of the .proto. Throws a 400. */
export type RequestCheck = (request: Message, call: Pick<ApiCall, "reportIgnored">) => void;

export type ServiceDefinition<Needs = ServiceDeps> = {
  readonly service: DescService;
  /** Whether a REST request with a field that the .proto does not have is refused. */
  readonly unknownFields: "refuse" | "ignore";
  /** What happens with the members of requests, in the formats of other vendors. */
  readonly members: MemberTable | undefined;
  /** By the local name of the method. */
  readonly methods: Readonly<Record<string, AnyMethod<Needs>>>;
};

/** A service with its methods; a method that is missing does not compile. */
export function defineService<
  Service extends DescService,
  Needs = ServiceDeps,
  Methods extends MethodsOf<Service, Needs> = MethodsOf<Service, Needs>,
>(service: Service, methods: Methods, members?: MemberTable): ServiceDefinition<Needs> & { readonly methods: Methods } {
  return { service, unknownFields: members ? "ignore" : "refuse", members, methods };
}

/** A service with its dependencies, as servers serve it. */
export type BoundService = ReturnType<typeof withDeps>;

/** The service with its dependencies. */
export function withDeps<Needs extends Pick<Deps, "catalog">>(
  { service, unknownFields, members, methods }: ServiceDefinition<Needs>,
  deps: Needs,
) {
  const bound = Object.entries(methods).map(([name, method]): [string, BoundMethod] => [
    name,
    typeof method === "function" ? method.bind(undefined, deps) : { ...method, prompt: method.prompt.bind(undefined, deps) },
  ]);
  const checks = members
    ? Object.values(service.method).map((method) => [method.localName, checkOf(memberCheck(members, method.input), deps)])
    : [];
  return {
    service,
    unknownFields,
    checks: Object.fromEntries(checks) as Readonly<Record<string, RequestCheck>>,
    methods: Object.fromEntries(bound),
  };
}

function checkOf(check: MemberCheck, { catalog }: Pick<Deps, "catalog">): RequestCheck {
  return (request: Message & { readonly model?: string }, call) => {
    const { extraFields = [] } = catalog.get(request.model ?? "") ?? {};
    const ignored = check(request, extraFields);
    if (ignored) call.reportIgnored(ignored.text);
  };
}

/** The person, or the operator who views the page, and the role in the account of the call. */
export type Member = PageSession & { readonly role: MemberRole | undefined };

/** The properties of a call that an RPC can read, the same in every protocol. */
export type ApiCall = {
  /** The calling key; for a member, the account with an empty id of a key. Methods of the operator API have none. */
  readonly key: AdmittedKey;
  /** The calling operator. Only methods of the operator API have one. */
  readonly operator: Operator;
  /** The person who is signed in to the customer page. Only calls of that page have one. */
  readonly member: Member;
  readonly actor: Actor;
  /** The change, without what the log shows of it. */
  readonly action: Action;
  /** Whether the log has the changes of this caller. */
  readonly isLogged: boolean;
  /** Throws if the credential is no longer valid. Streams call it regularly. */
  recheck(): Promise<void>;
  /** "CreditAccount" */
  readonly methodName: string;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
  /** Tells the caller which account has the name that it sent: the header x-vx-account of the response has the id. */
  nameAccount(id: string): void;
  /** For the log line of the call. */
  recordChange(target: string, amountMicros: bigint | undefined): void;
  /** Tells the caller which members of the request are ignored. */
  reportIgnored(names: string): void;
  /** Sends the headers of a stream, which may have no message for long. After that, an error ends the stream. */
  startStream(): void;
  /** Aborted when the caller disconnects, its deadline passes, or the server stops. */
  readonly signal: AbortSignal;
  /** Ends the call with the error, even if the caller does not read the response. */
  abort(error: DomainError): void;
  /** Counts memory that the response needs as memory of the request, until the call has ended. Throws "overloaded" if it has no room. */
  reserveMemory(bytes: number): void;
};

/** The dependencies of services. Ids and randomness are injected, so that tests can control them. */
export type Deps = {
  readonly database: Cells;
  readonly catalog: Catalog;
  readonly ids: Ids;
  readonly generateKey: (lane: Lane) => NewKey;
  readonly generateOperatorToken: () => string;
  /** The secret in the link of an invitation, or to the page of a customer. */
  readonly generateLinkSecret: () => string;
  readonly accountPageUrl: string;
  /** Called when a refused change could not be logged. */
  readonly onUnlogged: (action: Action, outcome: string, error: unknown) => void;
  /** Called after every complete audit. */
  readonly onAudit: (report: AuditReport) => Promise<void>;
  readonly decodeTokens: DecodeTokens;
  /** Names the provider in exports. */
  readonly productName: string;
  readonly topUpUrl: string | undefined;
  /** Undefined if the server takes no payments. */
  readonly topUps: TopUps | undefined;
  /** The payments of the owner of the demo account, on a server that takes none and permits that sign-in. */
  readonly simulatedTopUps: TopUps | undefined;
  readonly eventWatch: EventWatch;
  readonly eventsDays: number;
  readonly deliverer: Pick<Deliverer, "addressesFor" | "test">;
  readonly priceLists: PriceLists;
};
