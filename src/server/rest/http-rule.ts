import { type DescField, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http as httpOption } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import {
  selected_by_header as selectedByHeaderOption,
  selected_by as selectedByOption,
} from "../../../gen/vx/options/v1/options_pb.js";
import { findFieldPath, isParameter } from "../../codec/json/field-path.ts";
import { parseTemplate, type Template } from "./template.ts";

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
      if (field?.fieldKind === "list" || field?.fieldKind === "map")
        throw new HttpRuleError(`${fieldPath} is repeated`);
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
