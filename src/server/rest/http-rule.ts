import { type DescField, type DescMessage, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http as httpOption } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import {
  resumed_by as resumedByOption,
  selected_by_header as selectedByHeaderOption,
  selected_by as selectedByOption,
} from "../../../gen/vx/options/v1/options_pb.js";
import { isWellKnown } from "../../codec/json/well-known.ts";

/** One way to call a method over REST, from its google.api.http option. */
export type HttpBinding = {
  readonly method: DescMethod;
  /** GET, POST, … or the verb of `custom`, where "*" is every verb. */
  readonly verb: string;
  readonly path: string;
  readonly template: Template;
  /** What the body contains: the whole request ("*"), one field of it, or nothing. */
  readonly body: "*" | DescField | undefined;
  /** The field of the response that is sent; undefined for the whole response. */
  readonly responseBody: DescField | undefined;
  /** Set if the method shares its route: it serves the calls with this bool field set in the body. */
  readonly selectedBy: DescField | undefined;
  /** Set if the method shares its route: it serves the calls with this header. Empty otherwise. */
  readonly selectedByHeader: string;
  /** Set if the events of a stream have ids: the field of the request that gets the id of the last one. */
  readonly resumedBy: DescField | undefined;
};

/** A google.api.http option that cannot be served; the server does not start. */
export class HttpRuleError extends Error {}

/** The bindings of a method, including additional ones; empty if it has no google.api.http option. */
export function httpBindings(method: DescMethod): HttpBinding[] {
  if (!hasOption(method, httpOption)) return [];
  const rule = getOption(method, httpOption);
  for (const { additionalBindings } of rule.additionalBindings) {
    if (additionalBindings.length > 0)
      throw new HttpRuleError(`${nameOf(method)}: an additional binding has additional bindings`);
  }
  return [rule, ...rule.additionalBindings].map((one) => toBinding(method, one));
}

function toBinding(method: DescMethod, rule: HttpRule): HttpBinding {
  try {
    const { verb, path } = patternOf(rule);
    const template = parseTemplate(path);
    for (const { fieldPath } of template.variables) {
      const field = findFieldPath(method.input, fieldPath).at(-1);
      if (field?.fieldKind === "list" || field?.fieldKind === "map") throw new HttpRuleError(`${fieldPath} is repeated`);
      if (field && !isParameter(field)) throw new HttpRuleError(`${fieldPath} has no form in a path`);
    }
    return {
      method,
      verb,
      path,
      template,
      body: rule.body === "" ? undefined : rule.body === "*" ? "*" : findField(method, rule.body, "input"),
      responseBody: rule.responseBody === "" ? undefined : responseBody(method, rule.responseBody),
      selectedBy: selectedBy(method),
      selectedByHeader: getOption(method, selectedByHeaderOption),
      resumedBy: hasOption(method, resumedByOption) ? findField(method, getOption(method, resumedByOption), "input") : undefined,
    };
  } catch (error) {
    throw new HttpRuleError(`${nameOf(method)}: ${(error as Error).message}`);
  }
}

function patternOf(rule: HttpRule): { verb: string; path: string } {
  const { pattern } = rule;
  switch (pattern.case) {
    case undefined:
      throw new HttpRuleError("google.api.http names no path");
    case "custom":
      return { verb: pattern.value.kind, path: pattern.value.path };
    default:
      return { verb: pattern.case.toUpperCase(), path: pattern.value };
  }
}

function findField(method: DescMethod, name: string, side: "input" | "output"): DescField {
  const field = method[side].fields.find((candidate) => candidate.name === name);
  if (!field) throw new HttpRuleError(`${method[side].typeName} has no field "${name}"`);
  return field;
}

/** A member of a oneof may be absent, and JSON cannot represent an absent response. */
function responseBody(method: DescMethod, name: string): DescField {
  const field = findField(method, name, "output");
  if (field.oneof) throw new HttpRuleError(`response_body "${name}" is a member of a oneof`);
  return field;
}

function nameOf(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}

function selectedBy(method: DescMethod): DescField | undefined {
  if (!hasOption(method, selectedByOption)) return undefined;
  return findField(method, getOption(method, selectedByOption), "input");
}

/**
 * Path templates, as google/api/http.proto defines them:
 *
 *     Template  = "/" Segments [ ":" LITERAL ] ;
 *     Segments  = Segment { "/" Segment } ;
 *     Segment   = "*" | "**" | LITERAL | Variable ;
 *     Variable  = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *
 * "**" must be the last segment. A variable without "=" is "{field=*}".
 */
export type Template = {
  /** Literals, "*" and "**"; variables are replaced by their segments. */
  readonly segments: readonly Segment[];
  readonly variables: readonly Variable[];
  /** The text after the last ":", if any. */
  readonly verb: string | undefined;
};

export type Literal = { readonly kind: "literal"; readonly text: string };

export type Segment = Literal | { readonly kind: "*" | "**" };

/** The segments from start to end (exclusive) are the value of the field. */
export type Variable = {
  readonly fieldPath: string;
  readonly start: number;
  readonly end: number;
  /** Ends in "**": matches all remaining segments. */
  readonly openEnded: boolean;
  /** More than one segment: "%2F" stays encoded, so that the value can be split again. */
  readonly multiple: boolean;
};

export class TemplateError extends Error {}

const IDENT = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;
const LITERAL = /^(?:[\w.~!$&'()+,;@-]|%[0-9A-Fa-f]{2})+$/;

export function parseTemplate(text: string): Template {
  const segments: Segment[] = [];
  const variables: Variable[] = [];
  const parser = { rest: text };

  const fail = (what: string) => new TemplateError(`the template "${text}" ${what} at "${parser.rest}"`);
  const accept = (token: string) => {
    if (!parser.rest.startsWith(token)) return false;
    parser.rest = parser.rest.slice(token.length);
    return true;
  };
  const readUntil = (stops: RegExp) => {
    const end = parser.rest.search(stops);
    const taken = end < 0 ? parser.rest : parser.rest.slice(0, end);
    parser.rest = parser.rest.slice(taken.length);
    return taken;
  };
  const parseSegments = (inVariable: boolean) => {
    do {
      if (segments.at(-1)?.kind === "**") throw fail('has a segment after "**"');
      if (accept("**")) segments.push({ kind: "**" });
      else if (accept("*")) segments.push({ kind: "*" });
      else if (!inVariable && accept("{")) parseVariable();
      else {
        const literal = readUntil(/[/:{}*=]/);
        if (!LITERAL.test(literal)) throw fail("has no segment");
        const text = decoded(literal);
        if (text === undefined) throw fail("has a literal that is not valid UTF-8");
        segments.push({ kind: "literal", text });
      }
    } while (accept("/"));
  };
  const parseVariable = () => {
    const fieldPath = readUntil(/[=}]/);
    if (!IDENT.test(fieldPath)) throw fail("has no field name");
    if (variables.some((other) => other.fieldPath === fieldPath)) throw fail(`names "${fieldPath}" twice`);
    const start = segments.length;
    if (accept("=")) parseSegments(true);
    else segments.push({ kind: "*" });
    if (!accept("}")) throw fail('misses "}"');
    const openEnded = segments.at(-1)?.kind === "**";
    const multiple = openEnded || segments.length - start > 1;
    variables.push({ fieldPath, start, end: segments.length, openEnded, multiple });
  };

  if (!accept("/")) throw fail('does not begin with "/"');
  parseSegments(false);
  let verb: string | undefined;
  if (accept(":")) {
    verb = readUntil(/[/:{}*=]/);
    if (!LITERAL.test(verb)) throw fail('has no verb after ":"');
  }
  if (parser.rest !== "") throw fail("has text after its end");
  return { segments, variables, verb };
}

function decoded(literal: string): string | undefined {
  try {
    return decodeURIComponent(literal);
  } catch {
    return undefined;
  }
}

/** The fields along a dotted path, such as "message.content". Proto and JSON names are both accepted. */
export function findFieldPath(desc: DescMessage, path: string): DescField[] {
  const fields: DescField[] = [];
  let inside: DescMessage | undefined = desc;
  for (const name of path.split(".")) {
    const field: DescField | undefined = inside?.fields.find((one) => one.name === name || one.jsonName === name);
    if (!field) throw new Error(`${desc.typeName} has no field "${path}"`);
    fields.push(field);
    inside = field.fieldKind === "message" ? field.message : undefined;
  }
  return fields;
}

/**
 * Whether text can represent the field: maps and messages without a text form cannot be written in an
 * address.
 */
export function isParameter(field: DescField): boolean {
  return field.fieldKind !== "map" && (field.message === undefined || isWellKnown(field.message));
}
