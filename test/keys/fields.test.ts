// Every property of a key, wherever it is given, changed, cleared, refused, shown, logged, exported and erased.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { create, type DescMethodUnary, fromJson, type JsonObject, type JsonValue, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { type ApiKey, ApiKeySchema, KeyService } from "../../gen/vx/v1/key_pb.js";
import { row as commands } from "../../src/cli/keys.ts";
import { writerOf } from "../../src/codec/json/writer.ts";
import type { KeyProperties } from "../../src/keys/fields.ts";
import { givenToKey, KEY_SAMPLES, type KeySample } from "../../tools/openapi/key-samples.ts";
import { textColumns } from "../../tools/sql/personal-columns.ts";
import { envOf, vx } from "../cli/support.ts";
import { sendAnyJson } from "../support/any-json.ts";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { Customer, useCustomerApp } from "../support/customer.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer, type ProtocolCase, protocols } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

type PropertyName = keyof KeyProperties;

/** What a key shows beside the properties. */
const OTHERS: Readonly<Record<Exclude<keyof ApiKey, keyof Message | PropertyName>, true>> = {
  id: true,
  maskedKey: true,
  plan: true,
  state: true,
  createdAt: true,
  revokedAt: true,
  lastUsedAt: true,
  previousExpiresAt: true,
};

const NAMES = Object.keys(KEY_SAMPLES) as PropertyName[];
const columnOf = (name: PropertyName) => ApiKeySchema.field[name].name;
const GIVEN = givenToKey();

test("each field of the messages of a key has a sample", () => {
  const fieldsOf = ({ input }: DescMethodUnary, ...others: string[]) =>
    input.fields
      .map(({ localName }) => localName)
      .filter((name) => !others.includes(name))
      .sort();
  const sampled = [...NAMES].sort();
  expect(ApiKeySchema.fields.map(({ localName }) => localName).sort()).toEqual([...NAMES, ...Object.keys(OTHERS)].sort());
  expect(fieldsOf(KeyService.method.createKey)).toEqual(sampled);
  expect(fieldsOf(KeyService.method.updateKey, "keyId", "updateMask")).toEqual(sampled);
  expect(fieldsOf(AdminService.method.createKey, "accountId", "plan", "reason")).toEqual(sampled);
  expect(fieldsOf(AdminService.method.updateKey, "keyId", "updateMask", "reason")).toEqual(sampled);
});

const app = useCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_PLAN: "scale" });
const operator = useOperator(app);
const folder = createTemporaryFolder("key-fields");
afterAll(folder.remove);

/** A key as REST shows it, or the field that an error names. */
type Answer = { readonly key: JsonObject } | { readonly refused: string };

/** A way to create and to change keys. */
type Surface = {
  readonly create: (values: JsonObject) => Promise<Answer>;
  /** The columns in `cleared` are to have no value. */
  readonly update: (id: string, values: JsonObject, cleared?: readonly PropertyName[]) => Promise<Answer>;
  readonly read: (id: string) => Promise<JsonObject>;
  /** Whether the operator log has the changes. */
  readonly isLogged: boolean;
};

let parent: TestKey;
let customer: Customer;
let accountId: string;
beforeAll(async () => {
  ({ customer, accountId } = await Customer.signUp(app));
  await operator.putPlan({ name: "many-keys", rpm: 6_000, maxActiveKeys: 1_000, maxKeysCreatedPerHour: 1_000 });
  await operator.setAccountPlan({ accountId, plan: "many-keys" });
  parent = await createTestKey(operator, { accountId });
});

const jsonOf = (key: ApiKey | undefined): JsonObject => JSON.parse(key ? writerOf(ApiKeySchema)(key) : "{}");

/** The newest key, which must have this id. */
async function readByOperator(id: string): Promise<JsonObject> {
  const { keys } = await operator.searchKeys({ query: id });
  const { apiKeys } = await operator.listKeys({ accountId, pageSize: 1 });
  const listed = jsonOf(apiKeys[0]);
  expect(jsonOf(keys[0]?.apiKey)).toEqual(listed);
  return listed;
}

const REST: Surface = {
  create: (values) => sendRest("POST", "", values),
  update: (id, values, cleared = []) =>
    sendRest("PATCH", `/${id}`, { ...values, ...Object.fromEntries(cleared.map((name) => [columnOf(name), null])) }),
  read: async (id) => {
    const { body } = await sendAnyJson(app.url, { verb: "GET", path: "/v1/keys?page_size=1", secret: parent.secret });
    const answer = await sendRest("GET", `/${id}`);
    expect(answer).toEqual({ key: body.api_keys[0] });
    return "key" in answer ? answer.key : {};
  },
  isLogged: false,
};

async function sendRest(verb: string, path: string, values?: JsonObject): Promise<Answer> {
  const { status, body } = await sendAnyJson(app.url, { verb, path: `/v1/keys${path}`, secret: parent.secret, body: values });
  return status === 200 ? { key: body.api_key } : { refused: body.error.param };
}

type KeyMethod = DescMethodUnary & { readonly output: (typeof KeyService.method.updateKey)["output"] };

/** The developers' or the operators' API over one protocol. */
function rpc(protocol: ProtocolCase, isOperator: boolean): Surface {
  const { createKey, updateKey } = (isOperator ? AdminService : KeyService).method;
  const send = async (method: DescMethodUnary, values: JsonObject, cleared?: readonly PropertyName[]): Promise<Answer> => {
    const caller = protocol.open(isOperator ? app.adminUrl : app.url);
    const request = fromJson(method.input, values);
    if (cleared) Object.assign(request, { updateMask: create(FieldMaskSchema, { paths: cleared.map(columnOf) }) });
    const outcome = await caller.call(method as KeyMethod, request as never, bearer(isOperator ? OPERATOR_TOKEN : parent.secret));
    caller.close();
    return outcome.ok ? { key: jsonOf(outcome.message.apiKey) } : { refused: outcome.fields[0] ?? outcome.text };
  };
  return {
    create: (values) => send(createKey, isOperator ? { ...values, account_id: accountId } : values),
    update: (id, values, cleared) => send(updateKey, { ...values, key_id: id }, cleared),
    read: isOperator ? readByOperator : REST.read,
    isLogged: isOperator,
  };
}

const MEMBER: Surface = {
  create: (values) => sendAsMember("CreateKey", values),
  update: (id, values, cleared) =>
    sendAsMember("UpdateKey", { ...values, keyId: id, ...(cleared && { updateMask: cleared.join(",") }) }),
  read: readByOperator,
  isLogged: true,
};

async function sendAsMember(method: string, values: JsonObject): Promise<Answer> {
  const { status, body } = await customer.call(method, values, accountId);
  if (status !== 200) return { refused: JSON.stringify(body.details).match(/"field":"([^"]+)/)?.[1] ?? "" };
  return { key: jsonOf(fromJson(ApiKeySchema, body.apiKey as JsonValue)) };
}

const VX: Surface = {
  create: (values) => runVx("create", ["--account", accountId], values),
  update: (id, values, cleared = []) => {
    const words = cleared.flatMap((name) => [optionOf("update", name), KEY_SAMPLES[name].cleared?.word ?? ""]);
    return runVx("update", [id, ...words], values);
  },
  read: readByOperator,
  isLogged: true,
};

async function runVx(command: "create" | "update", words: readonly string[], values: JsonObject): Promise<Answer> {
  const options = NAMES.flatMap((name) => {
    const value = values[columnOf(name)];
    const which = value === KEY_SAMPLES[name].given ? "given" : value === KEY_SAMPLES[name].other ? "other" : undefined;
    if (value === undefined) return [];
    const items = Array.isArray(value) ? value : [value];
    const texts = which && KEY_SAMPLES[name].words ? [KEY_SAMPLES[name].words[which]] : items.map(String);
    return texts.flatMap((text) => [optionOf(command, name), text]);
  });
  const { code, stdout, stderr } = await vx(["keys", command, ...words, ...options, "--json"], envOf(app));
  return code === 0 ? { key: JSON.parse(stdout).api_key } : { refused: stderr };
}

function optionOf(command: "create" | "update", name: PropertyName): string {
  const parameter = commands.commands?.[command]?.parameters?.[name];
  return parameter?.inputs[0]?.flags.split(" ")[0] ?? `no option of ${name}`;
}

const PROTOCOLS = protocols.filter(({ name }) => /^gRPC$|^Connect JSON/.test(name));
const SURFACES: readonly (readonly [string, Surface])[] = [
  ["REST", REST],
  ...PROTOCOLS.map((protocol) => [`${protocol.name}, developers`, rpc(protocol, false)] as const),
  ...PROTOCOLS.map((protocol) => [`${protocol.name}, operators`, rpc(protocol, true)] as const),
  ["the customer page", MEMBER],
  ["vx keys", VX],
];

async function newKey({ create }: Surface): Promise<string> {
  const answer = await create(GIVEN);
  expect(answer).toMatchObject({ key: GIVEN });
  return "key" in answer ? String(answer.key.id) : "";
}

const loggedOf = ({ logged, ...sample }: KeySample, which: "given" | "other") => logged?.[which] ?? String(sample[which]);

describe.each(SURFACES)("over %s", (_, surface) => {
  test.each(NAMES)("%s is given, changed alone, and cleared", async (name) => {
    const { other, cleared } = KEY_SAMPLES[name];
    const column = columnOf(name);
    const id = await newKey(surface);
    const changed = { ...GIVEN, [column]: other };
    expect(await surface.update(id, { [column]: other })).toMatchObject({ key: changed });
    expect(await surface.read(id)).toMatchObject(changed);
    if (cleared) {
      expect(await surface.update(id, {}, [name])).toMatchObject({ key: { ...GIVEN, [column]: cleared.shown } });
      expect(await surface.read(id)).toMatchObject({ ...GIVEN, [column]: cleared.shown });
    } else if (surface !== VX) {
      expect(await surface.update(id, {}, [name])).toEqual({ refused: column });
    }
    if (!surface.isLogged) return;
    const { events } = await operator.listOperatorEvents({ target: id });
    const details = events.map((event) => event.details[column]).reverse();
    const logged = [loggedOf(KEY_SAMPLES[name], "given"), loggedOf(KEY_SAMPLES[name], "other")];
    expect(details.slice(0, cleared ? 3 : 2)).toEqual(cleared ? [...logged, cleared.word] : logged);
  });

  test.each(NAMES)("an invalid value of %s is refused by name", async (name) => {
    const column = columnOf(name);
    const { invalid } = KEY_SAMPLES[name];
    const pattern = surface === VX ? /./ : new RegExp(`^${column}\\b`);
    expect(await surface.create({ ...GIVEN, [column]: invalid })).toEqual({ refused: expect.stringMatching(pattern) });
    const id = await newKey(surface);
    expect(await surface.update(id, { [column]: invalid })).toEqual({ refused: expect.stringMatching(pattern) });
    expect(await surface.read(id)).toMatchObject(GIVEN);
  });
});

test("vx keys search shows each property", async () => {
  const { stdout } = await vx(["keys", "search", await newKey(VX)], envOf(app));
  for (const name of NAMES) expect(stdout).toContain(KEY_SAMPLES[name].words?.given ?? String(KEY_SAMPLES[name].given));
});

test("an export has each property, and closing the account erases those that are personal", async () => {
  const id = await newKey(VX);
  const output = join(folder.path, "export.tar.gz");
  expect(await vx(["accounts", "export", accountId, "--output", output], envOf(app))).toMatchObject({ code: 0 });
  const lines = execFileSync("tar", ["-xzf", output, "-O", "keys.jsonl"], { encoding: "utf8" }).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line)).find((key) => key.id === id)).toMatchObject(GIVEN);
  await operator.closeAccount({ accountId, reason: "test", balance: "written_off" });
  const marks = new Map((await textColumns(app.database.owner)).map(({ column, mark }) => [column, mark]));
  const isErased = (name: PropertyName) => marks.get(`keys.${columnOf(name)}`) === "personal: erased";
  const erased = NAMES.filter(isErased).map((name) => [columnOf(name), KEY_SAMPLES[name].cleared?.shown ?? ""]);
  expect(erased.length).toBeGreaterThan(0);
  expect(await readByOperator(id)).toMatchObject({ ...GIVEN, ...Object.fromEntries(erased) });
});
