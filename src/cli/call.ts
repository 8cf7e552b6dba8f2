import { create, type DescMessage, type DescMethodUnary, type Message, type MessageShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Admin, CallFailure, withAdmin } from "./client.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { LIST_OPTIONS, type ListOptions, type PageRequest, printCsv, printList } from "./list.ts";
import { printError, visible } from "./output.ts";
import { flag, JSON_RESPONSE, type Parameter, type Parameters } from "./parameters.ts";
import { type Column, printResponse, tableOf } from "./print.ts";
import type { Row } from "./row.ts";

type Methods = typeof AdminService.method;
/** The methods that have one response. */
type UnaryName = { [Name in keyof Methods]: Methods[Name] extends DescMethodUnary ? Name : never }[keyof Methods];
type RequestOf<Name extends UnaryName> = MessageShape<Methods[Name]["input"]>;
type ResponseOf<Name extends UnaryName> = MessageShape<Methods[Name]["output"]>;
type PageOf<Name extends UnaryName> = ResponseOf<Name> & Message & { readonly nextPageToken: string };

/** A field of the request that the table sets itself. */
type OwnField = keyof Message | "pageSize" | "pageToken" | "updateMask";
/** Where each field of a request comes from: a field without a parameter is a type error. */
type Fields<Name extends UnaryName> = {
  readonly [Field in Exclude<keyof RequestOf<Name>, OwnField>]: Parameter<RequestOf<Name>[Field] | undefined>;
};

/** The messages in a response, alone or as a list. */
type MessagesOf<Response, Item> = {
  [Field in keyof Response]-?: NonNullable<Response[Field]> extends Item ? NonNullable<Response[Field]> : never;
}[keyof Response];
type ItemOf<Name extends UnaryName> = MessagesOf<ResponseOf<Name>, readonly Message[]>[number];
type ColumnsFor<Item> = Item extends Message ? readonly Column<Item>[] : never;

/** The message of a response as a table, or another text. */
type Show<Name extends UnaryName> =
  | ColumnsFor<MessagesOf<ResponseOf<Name>, Message>>
  | ((response: ResponseOf<Name>, request: RequestOf<Name>) => string);

/** What a command prints, and what it checks. */
type Output<Name extends UnaryName> = {
  readonly show: Show<Name>;
  /** What is printed on stderr after the text. */
  readonly note?: (response: ResponseOf<Name>) => string | undefined;
  /** Throws if the fields do not fit each other. */
  readonly check?: (request: RequestOf<Name>) => void;
  /** How to repeat the call if its outcome is unknown, such as after an interruption. */
  readonly retry?: (request: RequestOf<Name>) => string;
  /** Without an option, there is nothing to change. */
  readonly needsOption?: true;
  /** The failure if the output ended before the secret was printed, which is returned only once. */
  readonly lost?: (response: ResponseOf<Name>) => string;
};
type Printed<Name extends UnaryName> =
  ResponseOf<Name> extends { readonly secret: string }
    ? Required<Pick<Output<Name>, "show" | "note" | "lost">>
    : Show<Name> | Output<Name>;

/** A command that makes one call and prints its response. */
export function call<Name extends UnaryName>(
  method: Name,
  about: string,
  printed: Printed<Name>,
  fields: Fields<Name>,
  ...examples: string[]
): Row {
  const { output: desc } = AdminService.method[method];
  const output = (typeof printed === "object" && "show" in printed ? printed : { show: printed }) as Output<Name>;
  const { show, note, check, retry, needsOption, lost } = output;
  const options = optionsOf(fields);
  const textOf = (response: ResponseOf<Name>, request: RequestOf<Name>) => {
    if (typeof show === "function") return show(response, request);
    const field = desc.fields.find(({ fieldKind }) => fieldKind === "message")?.localName ?? "";
    return tableOf(show, (response as unknown as Readonly<Record<string, never>>)[field]);
  };
  const run = async ({ json, ...values }: Record<string, unknown>, given: readonly string[]) => {
    const paths = given.filter((name) => name in options);
    if (needsOption && paths.length === 0) throw usageFailure(`nothing to change; add ${oneOf(Object.values(options))}`);
    const request = requestOf(method, values, paths);
    check?.(request);
    const send = (signal?: AbortSignal) => withAdmin((admin) => callMethod(admin, method, request, signal));
    const response = await (retry ? retryable(send, () => retry(request)) : send());
    const secret = "secret" in response ? `\n${visible(response.secret)}\n` : "";
    const isPrinted = await printResponse(json === true, desc, response, () => textOf(response, request) + secret);
    if (lost && !isPrinted) throw new CommandFailure(lost(response));
    const last = json ? undefined : note?.(response);
    if (last !== undefined) await printError(last);
  };
  return { about, examples, parameters: { json: JSON_RESPONSE, ...fields }, run };
}

type Listing<Name extends UnaryName> = {
  readonly columns: ColumnsFor<ItemOf<Name>>;
  /** The message of an item, if the list can be printed as CSV. */
  readonly csv?: DescMessage;
  /** Looks up what the request needs. */
  readonly prepare?: (admin: Admin, request: RequestOf<Name>) => Promise<RequestOf<Name>>;
};

/** A command that prints the list that a method returns page by page. `none` is printed if it is empty. */
export function list<Name extends UnaryName>(
  method: Name,
  about: string,
  listing: Listing<Name> | Listing<Name>["columns"],
  none: string,
  fields: Fields<Name>,
  ...examples: string[]
): Row {
  const { columns, csv, prepare } = ("columns" in listing ? listing : { columns: listing }) as Listing<Name>;
  const { output } = AdminService.method[method];
  const field = output.fields.find(({ fieldKind }) => fieldKind === "list")?.localName ?? "";
  const rows = (page: object) => (page as Readonly<Record<string, readonly never[]>>)[field] ?? [];
  const run = async ({ json, asCsv, page, ...values }: Record<string, unknown>) => {
    const given = requestOf(method, values, []);
    const options = { json: json === true, ...(page as ListOptions) };
    await withAdmin(async (admin) => {
      const request = prepare ? await prepare(admin, given) : given;
      const fetch = async (at: PageRequest) => (await callMethod(admin, method, { ...request, ...at })) as PageOf<Name>;
      if (csv && asCsv) await printCsv(options, { desc: csv, fetch, rows });
      else await printList(options, { desc: output, fetch, rows, columns, none });
    });
  };
  const asCsv = csv ? { asCsv: flag("--csv", "print the entries as CSV, with all fields") } : {};
  return { ...(about && { about }), examples, parameters: { json: JSON_RESPONSE, ...fields, ...asCsv, page: LIST_OPTIONS }, run };
}

function requestOf<Name extends UnaryName>(method: Name, values: object, paths: readonly string[]): RequestOf<Name> {
  const { input } = AdminService.method[method];
  const mask = { paths: paths.map((name) => input.field[name]?.name ?? name) };
  return create(input, "updateMask" in input.field ? { ...values, updateMask: mask } : values) as RequestOf<Name>;
}

function callMethod<Name extends UnaryName>(
  admin: Admin,
  name: Name,
  request: RequestOf<Name>,
  signal?: AbortSignal,
): Promise<ResponseOf<Name>> {
  const send = admin[name] as unknown as (request: RequestOf<Name>, options: CallOptions) => Promise<ResponseOf<Name>>;
  return send(request, signal ? { signal } : {});
}

/** If the outcome is unknown, the error says how a retry is safe. */
async function retryable<Response>(send: (signal: AbortSignal) => Promise<Response>, retry: () => string): Promise<Response> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await send(stop.signal);
  } catch (error) {
    if (!(error instanceof CallFailure) || error.refused) throw error;
    throw new CommandFailure(`${error.message}; to retry safely, ${retry()}`);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/** The options that set fields, by the names of the fields. */
function optionsOf(fields: Parameters): Readonly<Record<string, string>> {
  const named = Object.entries(fields).map(([name, { inputs }]) => [name, inputs[0]?.flags.split(" ")[0] ?? ""] as const);
  return Object.fromEntries(named.filter(([name, option]) => option.startsWith("--") && name !== "reason"));
}

function oneOf(names: readonly string[]): string {
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
