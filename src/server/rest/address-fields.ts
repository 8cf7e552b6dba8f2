import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { scalarParser } from "../../codec/json/scalar.ts";
import { holdsBareValue, parseWellKnown } from "../../codec/json/well-known.ts";
import { invalid, RequestProblem } from "../../codec/problem.ts";
import { type HttpBinding, isParameter } from "./http-rule.ts";
import type { PathValues } from "./rest-routes.ts";
import type { RestSurface } from "./surfaces.ts";

type Fields = Record<string, unknown>;

/** Sets the fields that the path names. They override all other values. */
export function bindPath({ variables }: HttpBinding, values: PathValues, message: Message): void {
  for (const { name, localName } of variables) (message as unknown as Fields)[localName] = decodeText(values[name] ?? "");
}

type QueryRules = {
  readonly binding: HttpBinding;
  readonly surface: Pick<RestSurface, "ignoredParameters">;
};

/** Sets the fields that the query names; a field of the path or the body is rejected. */
export function bindQuery({ binding, surface }: QueryRules, query: string, message: Message): void {
  const set = new Set<string>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decodeQuery(equals < 0 ? pair : pair.slice(0, equals));
    const text = decodeQuery(equals < 0 ? "" : pair.slice(equals + 1));
    if (surface.ignoredParameters.includes(name)) continue;
    if (binding.hasBody) throw invalid(shorten(name), "is in the query, but this path reads its parameters from the body");
    setField(queryField(binding, name), name, text, message, set);
  }
}

/** The field with the proto or JSON name. */
function queryField({ method, variables }: HttpBinding, name: string): DescField {
  const field = method.input.fields.find((one) => one.name === name || one.jsonName === name);
  if (!field) throw invalid(shorten(name), "is not a parameter of this path");
  if (variables.includes(field)) throw invalid(shorten(name), "is set by the path and cannot be in the query");
  return field;
}

function setField(field: DescField, name: string, text: string, message: Message, set: Set<string>): void {
  if (field.fieldKind !== "list" && set.has(field.name)) throw invalid(shorten(name), "is given more than once");
  set.add(field.name);
  const fields = message as unknown as Fields;
  const value = parse(field, text, name);
  if (field.fieldKind === "list") (fields[field.localName] as unknown[]).push(value);
  else fields[field.localName] = value;
}

function parse(field: DescField, text: string, name: string): unknown {
  if (!isParameter(field)) throw invalid(shorten(name), "cannot be set in a query");
  try {
    const scalar = scalarParser(holdsBareValue(field) ? (field.message?.fields[0] as DescField) : field);
    return scalar ? scalar(text) : parseWellKnown(field.message as DescMessage, text);
  } catch (error) {
    throw invalid(shorten(name), (error as Error).message);
  }
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // An address that is not valid text matches nothing.
    throw new RequestProblem("not_found", "The path is not valid percent-encoded UTF-8.");
  }
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalid("", "The query is not valid percent-encoded UTF-8.");
  }
}

function shorten(name: string): string {
  return name.length <= 200 ? name : `${name.slice(0, 200)}…`;
}
