import { type DescField, type DescMethod, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
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
  /** GET, POST, … */
  readonly verb: string;
  /** Of the supported form, see PATH. */
  readonly path: string;
  /** The fields in the path. */
  readonly variables: readonly DescField[];
  /** Whether the body is the request; otherwise there is none. */
  readonly hasBody: boolean;
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

/**
 * The part of google.api.http that the methods use: literals and fields, such as "/v1/keys/{key_id}:revoke". A field is one
 * segment, and a string of the request.
 */
const PATH = /^(?:\/(?:[\w.-]+|\{\w+\}))+(?::[\w.-]+)?$/;

function toBinding(method: DescMethod, { pattern, body, responseBody: response }: HttpRule): HttpBinding {
  try {
    if (pattern.case === undefined || pattern.case === "custom")
      throw new HttpRuleError("google.api.http names no path of a verb");
    const path = pattern.value;
    if (!PATH.test(path)) throw new HttpRuleError(`the path "${path}" is not supported`);
    if (body !== "" && body !== "*") throw new HttpRuleError(`the body "${body}" is not supported`);
    return {
      method,
      verb: pattern.case.toUpperCase(),
      path,
      variables: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => variable(method, name)),
      hasBody: body === "*",
      responseBody: response === "" ? undefined : responseBody(method, response),
      selectedBy: selectedBy(method),
      selectedByHeader: getOption(method, selectedByHeaderOption),
      resumedBy: hasOption(method, resumedByOption) ? findField(method, getOption(method, resumedByOption), "input") : undefined,
    };
  } catch (error) {
    throw new HttpRuleError(`${nameOf(method)}: ${(error as Error).message}`);
  }
}

function variable(method: DescMethod, name: string): DescField {
  const field = findField(method, name, "input");
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING || field.oneof)
    throw new HttpRuleError(`"${name}" is in the path, but not a string`);
  return field;
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
 * Whether text can represent the field: maps and messages without a text form cannot be written in an
 * address.
 */
export function isParameter(field: DescField): boolean {
  return field.fieldKind !== "map" && field.oneof === undefined && (field.message === undefined || isWellKnown(field.message));
}
