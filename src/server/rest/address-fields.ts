import { type DescField, type DescMessage, type DescOneof, fromJson, type Message } from "@bufbuild/protobuf";
import { scalarParser } from "../../codec/json/scalar.ts";
import { holdsBareValue, parseWellKnown } from "../../codec/json/well-known.ts";
import { invalid, RequestProblem } from "../../codec/problem.ts";
import { findFieldPath, type HttpBinding, isParameter, type Variable } from "./http-rule.ts";
import type { RestSurface } from "./surfaces.ts";

type Fields = Record<string, unknown>;

/** Sets the fields that the path names. Path variables override all other values. */
export function bindPath(binding: HttpBinding, segments: readonly string[], message: Message): void {
  for (const variable of binding.template.variables) {
    const text = decodeVariable(variable, segments);
    const fields = findFieldPath(binding.method.input, variable.fieldPath);
    setField(fields, variable.fieldPath, text, message, new Set());
  }
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
    if (binding.body === "*") throw invalid(shorten(name), "is in the query, but this path reads its parameters from the body");
    setField(queryFields(binding, name), name, text, message, set);
  }
}

function queryFields(binding: HttpBinding, name: string): DescField[] {
  let fields: DescField[];
  try {
    fields = findFieldPath(binding.method.input, name);
  } catch {
    throw invalid(shorten(name), "is not a parameter of this path");
  }
  const path = fields.map((field) => field.name).join(".");
  if (binding.body === fields[0]) throw invalid(shorten(name), "must be in the body, not in the query");
  if (binding.template.variables.some((variable) => variable.fieldPath === path)) {
    throw invalid(shorten(name), "is set by the path and cannot be in the query");
  }
  return fields;
}

function setField(path: readonly DescField[], name: string, text: string, message: Message, set: Set<string>): void {
  const field = path.at(-1) as DescField;
  const key = path.map((one) => one.name).join(".");
  if (field.fieldKind !== "list" && set.has(key)) throw invalid(shorten(name), "is given more than once");
  set.add(key);
  let inside = message as unknown as Fields;
  for (const step of path.slice(0, -1)) inside = messageAt(step, inside, name);
  const value = parse(field, text, name);
  if (field.fieldKind === "list") (inside[field.localName] as unknown[]).push(value);
  else if (field.oneof) setMember(field, field.oneof, inside, value, name);
  else inside[field.localName] = value;
}

function setMember(field: DescField, oneof: DescOneof, inside: Fields, value: unknown, name: string): void {
  checkMember(field, oneof, inside, name);
  inside[oneof.localName] = { case: field.localName, value };
}

/** The field of a oneof that is set; throws if it is another one. */
function checkMember(field: DescField, oneof: DescOneof, inside: Fields, name: string): string | undefined {
  const { case: set } = inside[oneof.localName] as { case: string | undefined };
  if (set !== undefined && set !== field.localName)
    throw invalid(shorten(name), "must not be set together with another parameter");
  return set;
}

/** The message in an intermediate field of a path, created if it is absent. */
function messageAt(field: DescField, inside: Fields, name: string): Fields {
  const desc = field.message as DescMessage;
  if (field.oneof) {
    const set = checkMember(field, field.oneof, inside, name);
    if (set === undefined) inside[field.oneof.localName] = { case: field.localName, value: createOf(desc) };
    return (inside[field.oneof.localName] as { value: Fields }).value;
  }
  inside[field.localName] ??= createOf(desc);
  return inside[field.localName] as Fields;
}

function createOf(desc: DescMessage): Fields {
  return fromJson(desc, {}) as unknown as Fields;
}

function parse(field: DescField, text: string, name: string): unknown {
  if (!isParameter(field)) throw invalid(shorten(name), "cannot be set in a path or query");
  try {
    const scalar = scalarParser(holdsBareValue(field) ? (field.message?.fields[0] as DescField) : field);
    return scalar ? scalar(text) : parseWellKnown(field.message as DescMessage, text);
  } catch (error) {
    throw invalid(shorten(name), (error as Error).message);
  }
}

function decodeVariable(variable: Variable, segments: readonly string[]): string {
  const own = segments.slice(variable.start, variable.openEnded ? undefined : variable.end);
  return own.map(variable.multiple ? decodeKeepingSlashes : decodeText).join("/");
}

/** A value of several segments keeps "%2F", which would otherwise look like a separator. */
function decodeKeepingSlashes(text: string): string {
  return text
    .split(/(%2[Ff])/)
    .map((part, i) => (i % 2 === 1 ? part : decodeText(part)))
    .join("");
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
