import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hasOption } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { json_schema } from "../../gen/vx/options/v1/options_pb.js";
import { isWellFormedKey } from "../../src/domain/credentials.ts";
import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { policyOf, surfaceOf } from "../../src/rules/policy.ts";
import { isUntyped } from "../../src/rules/untyped-values.ts";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { developerMethods } from "../support/any-method.ts";

type Node = { readonly [key: string]: Node };
type Operation = { path: string; verb: string; node: Node };

const text = readFileSync("gen/openapi.json", "utf8");
const document = JSON.parse(text) as Node;
const operations: Operation[] = Object.entries(at(document, "paths")).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, node]) => ({ path, verb: verb.toUpperCase(), node })),
);
/** Returns the value at a path, and throws if there is none. */
function at(node: Node, ...path: string[]): Node {
  return path.reduce((inside, key) => {
    const next = inside[key];
    if (next === undefined) throw new Error(`there is no ${path.join(" > ")}`);
    return next;
  }, node);
}

function reasonsOf(operation: Node, status: string): Reason[] {
  const examples = at(operation, "responses", status, "content", "application/json", "examples");
  return Object.keys(examples) as Reason[];
}

const bindings = developerMethods.flatMap(httpBindings);

test("the document has exactly the REST routes of the methods", () => {
  const described = operations.map(({ path, verb }) => `${verb} ${path}`);
  // Paths below /anthropic are second addresses of the operations: the same paths with another base URL. A method that a
  // header selects has only that address of its own.
  const served = bindings.filter(({ path, selectedByHeader }) => path.startsWith("/anthropic/") === (selectedByHeader !== ""));
  expect(described.toSorted()).toEqual([...new Set(served.map(({ path, verb }) => `${verb} ${path}`))].sort());
  expect(at(document, "paths", "/v1/messages", "post", "servers")).toMatchObject([{ url: "/" }, { url: "/anthropic" }]);
  expect(bindings.length).toBeGreaterThan(10);
});

test.each([
  ["/v1/models", "/anthropic/v1/models", "ListModelInfos"],
  ["/v1/models/{model}", "/anthropic/v1/models/{model}", "GetModelInfo"],
])("GET %s names the header that gets the responses of GET %s", (path, second, id) => {
  const names = at(document, "paths", path, "get", "parameters") as unknown as Node[];
  expect(names.find(({ in: where }) => String(where) === "header")).toMatchObject({
    name: "anthropic-version",
    description: expect.stringContaining(id),
  });
  const operation = at(document, "paths", second, "get");
  expect(operation.operationId).toBe(id);
  expect(at(operation, "servers")).toMatchObject([{ url: "/", description: expect.stringContaining("x-api-key") }]);
});

test("gen/openapi.json is up to date", { timeout: 60_000 }, () => {
  execFileSync(process.execPath, ["tools/derive-validate-proto.ts"]);
  const PATH = `node_modules/.bin:${process.env.PATH}`;
  const options = { env: { ...process.env, PATH }, encoding: "utf8", maxBuffer: 1 << 26 } as const;
  expect(execFileSync(process.execPath, ["tools/write-openapi.ts", "-"], options)).toBe(text);
});

describe("caps of a generation", () => {
  const schema = at(document, "components", "schemas", "GenerateRequest");

  const { messages, max_tokens, temperature } = at(schema, "properties");
  const message = at(document, "components", "schemas", "MessageInput", "properties");

  test.each<[string, Node | undefined, object]>([
    ["1 to 200 messages", messages, { type: "array", minItems: 1, maxItems: 200 }],
    ["400,000 characters in a message", message.content, { maxLength: 400_000 }],
    ["four roles", message.role, { enum: ["system", "user", "assistant", "tool"] }],
    ["max_tokens", max_tokens, { type: ["integer", "null"], minimum: 1, maximum: 32_000 }],
    ["temperature", temperature, { type: ["number", "null"], minimum: 0, maximum: 2 }],
    ["only the fields described", schema, { required: ["model", "messages"], additionalProperties: false }],
  ])("%s", (_, described, expected) => {
    expect(described).toMatchObject(expected);
  });
});

test("an untyped field has the schema of its json_schema option", () => {
  const message = at(document, "components", "schemas", "ChatMessageInput");
  expect(message).toMatchObject({ required: ["role"] });
  const forms = at(message, "properties", "content", "anyOf");
  expect(forms).toMatchObject([
    { type: "string", maxLength: 400_000 },
    { type: "array", minItems: 1, items: { properties: { type: { enum: ["text", "refusal", "image_url"] } } } },
    { type: "null" },
  ]);
  const open = developerMethods
    .flatMap(({ input, output }) => [input, output])
    .flatMap(({ fields }) => fields)
    .filter((field) => field.message && isUntyped(field.message) && !hasOption(field, json_schema));
  expect(open).toEqual([]);
});

describe("requirements of client generators", () => {
  const components = at(document, "components", "schemas");
  const schemas = schemasIn(document);

  test("each array has items, and each enum and const has a type", () => {
    const arrays = schemas.filter(({ type }) => [type].flat().includes("array" as never));
    expect(arrays.length).toBeGreaterThan(10);
    expect(arrays.filter((schema) => !("items" in schema))).toEqual([]);
    expect(schemas.filter((schema) => ("enum" in schema || "const" in schema) && !("type" in schema))).toEqual([]);
  });

  test("no enum contains null, and no field has a default", () => {
    const enums = schemas.flatMap((schema) => ("enum" in schema ? [schema.enum as unknown as unknown[]] : []));
    expect(enums.filter((values) => values.includes(null))).toEqual([]);
    expect(schemas.filter((schema) => "default" in schema)).toEqual([]);
  });

  test("no property has only the type null, and no boolean has an enum or a const", () => {
    const properties = schemas.flatMap((schema) => Object.values((schema.properties ?? {}) as Node));
    expect(properties.length).toBeGreaterThan(100);
    expect(properties.filter((property) => at(property as Node).type === ("null" as unknown))).toEqual([]);
    const booleans = schemas.filter(({ type }) => [type].flat().includes("boolean" as never));
    expect(booleans.length).toBeGreaterThan(10);
    expect(booleans.filter((schema) => "enum" in schema || "const" in schema)).toEqual([]);
  });

  test("a field that is always null, or always false, accepts no other value", () => {
    const result = at(components, "ChatChoice", "properties", "logprobs");
    expect(result).toMatchObject({ type: ["string", "null"], const: null });
    const echo = at(components, "CreateCompletionRequest", "properties", "echo");
    expect(echo).toMatchObject({ type: ["boolean", "null"], not: { const: true } });
  });

  test("no schema has the name of a class of typescript-fetch", () => {
    expect(Object.keys(components)).not.toContain("ResponseError");
  });

  test("no schema name collides with a type that generators create for an operation", () => {
    const taken = operations.flatMap(({ node: { operationId } }) =>
      ["", "Response", "Params", "Body", "JSONBody", "JSONRequestBody"].map((end) => `${operationId}${end}`),
    );
    expect(Object.keys(components).filter((name) => taken.includes(name))).toEqual([]);
  });

  test("a string that rejects control characters has a pattern", () => {
    const { parameters } = at(document, "paths", "/v1/keys/{key_id}", "get");
    const name = at(components, "CreateKeyRequest", "properties", "name");
    for (const { pattern } of [name, at(parameters as Node, "0", "schema")]) {
      const regex = new RegExp(String(pattern), "u");
      expect(["ci", "Büro 3", ""].every((text) => regex.test(text))).toBe(true);
      expect(["a\n", "\u0007b", "\u007f", "a\u0085"].some((text) => regex.test(text))).toBe(false);
    }
  });
});

/** Every schema of the document, nested ones included. Examples are left out. */
function schemasIn(node: unknown, isSchema = false): Node[] {
  if (Array.isArray(node)) return node.flatMap((item) => schemasIn(item, isSchema));
  if (typeof node !== "object" || node === null) return [];
  const inside = Object.entries(node).flatMap(([name, value]) => {
    if (["example", "examples"].includes(name) && !isSchema) return [];
    if (name === "not" && isSchema) return []; // Generators ignore it.
    if (isSchema && name === "properties") return Object.values(value).flatMap((one) => schemasIn(one, true));
    if (name === "schemas") return Object.values(value).flatMap((one) => schemasIn(one, true));
    return schemasIn(value, isSchema || name === "schema");
  });
  return isSchema ? [node as Node, ...inside] : inside;
}

test("every operation requires a bearer key", () => {
  expect(document.security).toEqual([{ apiKey: [] }]);
  const schemes = at(document, "components", "securitySchemes");
  expect(schemes).toMatchObject({ apiKey: { type: "http", scheme: "bearer" } });
  expect(operations.filter(({ node }) => "security" in node)).toEqual([]);
});

test("a unary and a streamed generation are one operation with two response types", () => {
  const content = at(document, "paths", "/v1/generate", "post", "responses", "200", "content");
  expect(Object.keys(content)).toEqual(["application/json", "text/event-stream"]);
});

test("64-bit integers are JSON integers, times are date-times, and every response field is required", () => {
  const me = at(document, "components", "schemas", "GetMeResult");
  expect(at(me, "properties", "balance_micros")).toMatchObject({ type: "integer", format: "int64" });
  expect(me.required).toEqual(["key", "key_name", "plan", "rate_limit_rpm", "balance", "balance_micros"]);
  const key = at(document, "components", "schemas", "ApiKey");
  expect(at(key, "properties", "revoked_at")).toMatchObject({ type: ["string", "null"], format: "date-time" });
  expect(key.required).toContain("revoked_at");
});

describe.each(operations)("$verb $path", ({ path, verb, node }) => {
  const method = bindings.find((binding) => binding.path === path && binding.verb === verb)?.method;
  if (!method) throw new Error(`${verb} ${path} belongs to no method`);
  const policy = policyOf(method);
  const statuses = Object.keys(at(node, "responses"));

  test("has a summary of two to four words, a description and an example response", () => {
    expect(node.summary).toMatch(/^[A-Z][a-z]+( [a-z]+){1,3}$/);
    expect(node.description).toMatch(/^[A-Z].+\./);
    const [content] = Object.values(at(node, "responses", "200", "content")) as Node[];
    expect(content?.example ?? content?.examples).toBeDefined();
  });

  test("lists the errors that its policy implies", () => {
    expect(statuses).toEqual(expect.arrayContaining(["400", "401", "403", "429", "500", "503"]));
    expect(statuses.includes("402")).toBe(policy.metered);
    expect(reasonsOf(node, "403").includes("insufficient_scope")).toBe(policy.scope !== undefined);
    const namesModel = verb === "POST" && method.input.fields.some(({ name }) => name === "model");
    expect(statuses.includes("404")).toBe(path.includes("{") || namesModel);
    expect(statuses.includes("413")).toBe("requestBody" in node);
    expect(reasonsOf(node, "429").includes("rate_limit_exceeded")).toBe(policy.rateLimited);
  });

  test("describes each error with the common schema and the reasons of its status", () => {
    for (const status of statuses.filter((one) => one !== "200")) {
      const content = at(node, "responses", status, "content", "application/json");
      const reasons = reasonsOf(node, status);
      const body = surfaceOf(method.parent) === "anthropic" ? "AnthropicErrorBody" : "ErrorBody";
      expect(at(content, "schema")).toEqual({ $ref: `#/components/schemas/${body}` });
      expect(reasons.map((reason) => ERRORS[reason].status)).toEqual(reasons.map(() => Number(status)));
      const description = String(at(node, "responses", status, "description"));
      for (const reason of reasons) expect(description).toContain(`\`${reason}\``);
    }
  });

  test("lists the headers of each response", () => {
    const names = (status: string) => Object.keys(at(node, "responses", status, "headers"));
    for (const status of statuses) expect(names(status)).toContain("x-request-id");
    expect(names("401")).toContain("WWW-Authenticate");
    expect(names("429")).toContain("Retry-After");
    expect(names("200").includes("RateLimit")).toBe(policy.rateLimited);
  });
});

test("operation ids are method names and are unique", () => {
  const ids = operations.map(({ node }) => String(node.operationId));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(developerMethods.map(({ name }) => name)).toContain(id.replace(/By(Delete|Post|Get)$/, ""));
  }
});

test("no example contains a valid key", () => {
  const keys = text.match(/vx_live_\w+/g) ?? [];
  expect(keys.length).toBeGreaterThan(0);
  expect(keys.filter(isWellFormedKey)).toEqual([]);
});
