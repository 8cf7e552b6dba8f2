import { create, type DescMessage, type DescMethodUnary, type Message, type MessageShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Admin, CallFailure, withAdmin } from "./client.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { LIST_OPTIONS, type ListOptions, type PageRequest, printCsv, printList } from "./list.ts";
import { printError, visible } from "./output.ts";
import { flag, JSON_RESPONSE, type Parameter } from "./parameters.ts";
import { type Column, printResponse, tableOf } from "./print.ts";
import type { Row } from "./row.ts";

type Methods = typeof AdminService.method;
/** The methods that have one response. */
export type UnaryName = { [Name in keyof Methods]: Methods[Name] extends DescMethodUnary ? Name : never }[keyof Methods];
type RequestOf<Name extends UnaryName> = MessageShape<Methods[Name]["input"]>;
type ResponseOf<Name extends UnaryName> = MessageShape<Methods[Name]["output"]>;

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

/** The first message of a response as a table, or another text. */
type Show<Name extends UnaryName> =
  | ColumnsFor<MessagesOf<ResponseOf<Name>, Message>>
  | ((response: ResponseOf<Name>, request: RequestOf<Name>) => string);

type Call<Name extends UnaryName> = {
  readonly about?: string;
  readonly fields: Fields<Name>;
  readonly examples: readonly string[];
};

type OneCall<Name extends UnaryName> = Call<Name> & {
  /** What is printed on stderr after the response. */
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
type Needed<Name extends UnaryName> = ResponseOf<Name> extends { readonly secret: string } ? "note" | "lost" : never;

/** A command that makes one call and prints its response. */
export function call<Name extends UnaryName>(
  method: Name,
  show: Show<Name>,
  row: OneCall<Name> & Required<Pick<OneCall<Name>, Needed<Name>>>,
): Row {
  const { output: desc } = AdminService.method[method];
  const { fields, note, check, retry, needsOption, lost, ...help }: OneCall<Name> = row;
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
    const send = (options?: CallOptions) => withAdmin((admin) => callMethod(admin, method, request, options));
    const response = await (retry ? retryable(send, () => retry(request)) : send());
    const secret = "secret" in response ? `\n${visible(response.secret)}\n` : "";
    const isPrinted = await printResponse(json === true, desc, response, () => textOf(response, request) + secret);
    if (lost && !isPrinted) throw new CommandFailure(lost(response));
    const last = json ? undefined : note?.(response);
    if (last !== undefined) await printError(last);
  };
  return { ...help, parameters: { json: JSON_RESPONSE, ...fields }, run };
}

type ListCall<Name extends UnaryName> = Call<Name> & {
  /** Printed if the list is empty. */
  readonly none: string;
  /** Whether the list can be printed as CSV. */
  readonly csv?: true;
  /** Looks up what the request needs. */
  readonly prepare?: (admin: Admin, request: RequestOf<Name>) => Promise<RequestOf<Name>>;
};

/** A command that prints the list that a method returns page by page. */
export function list<Name extends UnaryName>(
  method: Name,
  columns: ColumnsFor<ItemOf<Name>>,
  { fields, none, csv, prepare, ...help }: ListCall<Name>,
): Row {
  const run = async ({ json, asCsv, page, ...values }: Record<string, unknown>) => {
    const { output } = AdminService.method[method];
    const given = requestOf(method, values, []);
    const options = { json: json === true, ...(page as ListOptions) };
    await withAdmin(async (admin) => {
      const request = prepare ? await prepare(admin, given) : given;
      const all = listIn(admin, method, request);
      if (asCsv) await printCsv(options, all, all.item);
      else await printList(options, { ...all, desc: output, columns: columns as readonly Column<ItemOf<Name>>[], none });
    });
  };
  const asCsv = csv ? { asCsv: flag("--csv", "print the entries as CSV, with all fields") } : {};
  return { ...help, parameters: { json: JSON_RESPONSE, ...fields, ...asCsv, page: LIST_OPTIONS }, run };
}

/** The first list of a response, page by page, and the message of its items. */
export function listIn<Name extends UnaryName>(admin: Admin, method: Name, request: object) {
  const field = AdminService.method[method].output.fields.find(({ fieldKind }) => fieldKind === "list");
  return {
    item: field?.message as DescMessage,
    fetch: (page: PageRequest) => callMethod(admin, method, { ...request, ...page } as RequestOf<Name>),
    rows: (page: ResponseOf<Name>) =>
      (page as unknown as Readonly<Record<string, readonly ItemOf<Name>[]>>)[field?.localName ?? ""] ?? [],
  };
}

function requestOf<Name extends UnaryName>(method: Name, values: object, paths: readonly string[]): RequestOf<Name> {
  const { input } = AdminService.method[method];
  const mask = { paths: paths.map((name) => input.field[name]?.name ?? name) };
  return create(input, "updateMask" in input.field ? { ...values, updateMask: mask } : values) as RequestOf<Name>;
}

type Send<Name extends UnaryName> = (request: RequestOf<Name>, options?: CallOptions) => Promise<ResponseOf<Name>>;
const callMethod = <Name extends UnaryName>(admin: Admin, name: Name, ...call: Parameters<Send<Name>>) =>
  (admin[name] as unknown as Send<Name>)(...call);

/** If the outcome is unknown, the error says how a retry is safe. */
async function retryable<Response>(send: (options: CallOptions) => Promise<Response>, retry: () => string): Promise<Response> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await send({ signal: stop.signal });
  } catch (error) {
    if (!(error instanceof CallFailure) || error.refused) throw error;
    throw new CommandFailure(`${error.message}; to retry safely, ${retry()}`);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/** The options that set fields, by the names of the fields. */
function optionsOf(fields: Readonly<Record<string, Parameter<unknown>>>): Readonly<Record<string, string>> {
  const named = Object.entries(fields).map(([name, { inputs }]) => [name, inputs[0]?.flags.split(" ")[0] ?? ""] as const);
  return Object.fromEntries(named.filter(([name, option]) => option.startsWith("--") && name !== "reason"));
}

function oneOf(names: readonly string[]): string {
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
