import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { DomainError } from "../domain/errors.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import { IgnoredMembers, ignoredIn } from "./ignored-members.ts";
import { isObject, shown } from "./untyped-members.ts";
import { fieldForUnknown, isUntyped, jsonOf, readField } from "./untyped-values.ts";

/** What happens with the members of requests that other vendors define: a table for each of their APIs decides. */

export type Rule =
  /** The server reads the member. */
  | { readonly kind: "read" }
  /** The member does not change the reply. */
  | { readonly kind: "no effect" }
  /** A 400 names the member, unless the model passes it on. */
  | { readonly kind: "refused" }
  /** A 400 names the member unless its value has no effect. */
  | { readonly kind: "only"; readonly accepts: (value: JsonValue) => boolean; readonly shown: string }
  /** A list of tools: those of other types are left out if the model decides which it calls. Otherwise a 400 names them. */
  | { readonly kind: "tools"; readonly type: string };

export type MemberRow = {
  /** Such as "messages[].role". Members with the same rule are in one row. */
  readonly paths: readonly string[];
  readonly rule: Rule;
  /** For the documents. */
  readonly text: string;
};

export function read(paths: string, text: string): MemberRow {
  return { paths: paths.split(" "), rule: { kind: "read" }, text };
}

export function tools(type: string, text: string): MemberRow {
  return { paths: ["tools"], rule: { kind: "tools", type }, text };
}

export function noEffect(paths: string, text = "no effect"): MemberRow {
  return { paths: paths.split(" "), rule: { kind: "no effect" }, text };
}

export function refused(paths: string, text = "refused"): MemberRow {
  return { paths: paths.split(" "), rule: { kind: "refused" }, text };
}

export function only(paths: string, accepts: (value: JsonValue) => boolean, accepted: string): MemberRow {
  return {
    paths: paths.split(" "),
    rule: { kind: "only", accepts, shown: accepted },
    text: `only ${accepted
      .split(" or ")
      .map((one) => `\`${one}\``)
      .join(" or ")}`,
  };
}

/** A member is below the list that contains its object. */
type Node = { readonly members: Map<string, Node>; rule: Rule | undefined };

export type MemberTable = { readonly rows: readonly MemberRow[]; readonly root: Node };

export function memberTable(...rows: readonly MemberRow[]): MemberTable {
  const root: Node = { members: new Map(), rule: undefined };
  for (const { paths, rule } of rows) {
    for (const path of paths) {
      let node = root;
      for (const name of path.replaceAll("[]", "").split(".")) {
        const next = node.members.get(name) ?? { members: new Map(), rule: undefined };
        node.members.set(name, next);
        node = next;
      }
      node.rule = rule;
    }
  }
  return { rows, root };
}

/** A field of a message that has a rule, or members with rules. */
type CheckedField = {
  readonly field: DescField;
  readonly node: Node;
  /** Of a message. The form of other fields is open. */
  readonly below: readonly CheckedField[] | undefined;
};

function checkedFields({ members }: Node, desc: DescMessage): readonly CheckedField[] {
  return desc.fields.flatMap((field) => {
    const node = members.get(field.name);
    if (!node || (node.members.size === 0 && (node.rule?.kind === "read" || node.rule?.kind === "no effect"))) return [];
    const isOpen = !field.message || isUntyped(field.message);
    return { field, node, below: isOpen ? undefined : checkedFields(node, field.message as DescMessage) };
  });
}

export type MemberCheck = (request: Message, extraFields: readonly string[]) => IgnoredMembers | undefined;

/**
 * Checks the members of a request: it throws for those that are refused, and returns those that are ignored, because neither the
 * vendor's API has them nor the model passes them on.
 */
export function memberCheck({ root }: MemberTable, desc: DescMessage): MemberCheck {
  const fields = checkedFields(root, desc);
  const collecting = fieldForUnknown(desc);
  return (request, extraFields) => {
    const walk = new Walk(isCallOptional(request), ignoredIn(request));
    walk.fields(fields, request, "");
    const collected = (collecting && readField(collecting, request)) as JsonObject | undefined;
    for (const name in collected) {
      if (!extraFields.includes(name)) walk.member(root, name, collected[name] as JsonValue, "");
    }
    return walk.ignored;
  };
}

class Walk {
  readonly #isCallOptional: boolean;
  ignored: IgnoredMembers | undefined;

  constructor(isCallOptional: boolean, ignored: IgnoredMembers | undefined) {
    this.#isCallOptional = isCallOptional;
    this.ignored = ignored;
  }

  fields(fields: readonly CheckedField[], message: Message, prefix: string): void {
    for (const { field, node, below } of fields) {
      const value = readField(field, message);
      if (value === undefined) continue;
      const path = prefix + field.name;
      if (!below) this.#value(node, field.message ? jsonOf(value as Value) : (value as JsonValue), path);
      else if (Array.isArray(value)) this.#items(node, below, value, path);
      else this.fields(below, value as Message, `${path}.`);
    }
  }

  #items(node: Node, below: readonly CheckedField[], items: readonly Message[], path: string): void {
    for (let i = 0; i < items.length; i++) {
      const at = `${path}[${i}]`;
      const item = items[i] as Message;
      if (!this.#isLeftOut(node, item, at)) this.fields(below, item, `${at}.`);
    }
  }

  #value(node: Node, value: JsonValue, path: string): void {
    const { rule, members } = node;
    if (value === null) return;
    if (rule?.kind === "refused") throw unsupported(path);
    if (rule?.kind === "only" && !rule.accepts(value)) throw unsupported(path, rule.shown);
    if (members.size === 0) return;
    if (isObject(value)) this.#object(node, value, path);
    else if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        if (isObject(value[i])) this.#object(node, value[i], `${path}[${i}]`);
      }
    }
  }

  #object(node: Node, object: JsonObject, path: string): void {
    if (this.#isLeftOut(node, object, path)) return;
    for (const name in object) this.member(node, name, object[name] as JsonValue, `${path}.`);
  }

  member({ members }: Node, name: string, value: JsonValue, prefix: string): void {
    const node = members.get(name);
    if (node) this.#value(node, value, prefix + name);
    else if (value !== null) this.#ignoredMembers().add(prefix + name);
  }

  #isLeftOut({ rule }: Node, tool: object, path: string): boolean {
    if (rule?.kind !== "tools" || !isOtherTool(tool, rule.type)) return false;
    if (!this.#isCallOptional) {
      const hint = 'It would be left out if tool_choice were absent or "auto"';
      throw DomainError.ofField(`${path}.type`, `must be "${rule.type}": ${shown(tool.type)} is not supported. ${hint}`);
    }
    this.#ignoredMembers().addWhole(path);
    return true;
  }

  #ignoredMembers(): IgnoredMembers {
    this.ignored ??= new IgnoredMembers();
    return this.ignored;
  }
}

/** Whether a tool has another type than the one that the server supports. A request with one may leave it out. */
export function isOtherTool(tool: object, type: string): tool is { readonly type: string } {
  return "type" in tool && typeof tool.type === "string" && tool.type !== type;
}

/** Whether the model decides if it calls a tool. */
function isCallOptional(request: Message): boolean {
  const { toolChoice } = request as { toolChoice?: Value | (Message & { readonly type: string }) };
  if (!toolChoice) return true;
  const choice = "type" in toolChoice ? toolChoice.type : jsonOf(toolChoice);
  return choice === null || choice === "auto";
}

/** The error also names the value that is accepted. */
function unsupported(field: string, accepted?: string): DomainError {
  return DomainError.ofField(field, accepted === undefined ? "is not supported" : `only ${accepted} is supported`);
}
