import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anthropicClients } from "../../src/domain/anthropic-clients.ts";
import { ERRORS } from "../../src/domain/errors.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { cleanEnv } from "../support/clean-env.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey } from "../support/openai.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);
const MODELS = `models:
  - id: acme/dear
    context_window: 200000
    max_output_tokens: 64000
    aliases: [best]
    capabilities: [tools, json_schema]
    prices: {input: 3000000, cached_input: 300000, output: 15000000, reasoning: 20000000, image: 1500, request: 100}
    upstream: {kind: sandbox}
  - id: acme/cheap
    context_window: 8000
    max_output_tokens: 4000
    prices: {input: 250000, output: 1000000}
    upstream: {kind: sandbox}
  - id: acme/vectors
    context_window: 8000
    max_output_tokens: 1
    capabilities: [embeddings]
    prices: {input: 20000, output: 0}
    upstream: {kind: sandbox}
`;
const LOGO = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>';
const NAME = `Acme <script>alert("1")</script> & 'Co'`;
const SUPPORT = "https://help.example.com/?a=1&b='2'";

const folder = createTemporaryFolder("home");
const models = createModelsFile(MODELS);
let app: TestApp;
let page: string;
let secret: string;

beforeAll(async () => {
  const logo = join(folder.path, "logo.svg");
  writeFileSync(logo, LOGO);
  const env = {
    VX_MODELS: models.path,
    VX_PRODUCT_NAME: NAME,
    VX_PRODUCT_LOGO: logo,
    VX_SUPPORT_URL: SUPPORT,
  };
  app = await startTestApp({ env });
  ({ secret } = await createPaidKey(operatorOf(app)));
  page = await (await fetch(app.url)).text();
});
afterAll(async () => {
  await app.stop();
  models.remove();
  folder.remove();
});

/** The text of the elements' HTML. */
function textOf(source: string): string {
  const text = source
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

describe.each(["/", "/docs"])("%s", (path) => {
  test("shows the name as text, the logo and the address of the support", async () => {
    const source = await (await fetch(new URL(path, app.url))).text();
    expect(source).not.toContain("<script>alert");
    const [, title] = /<title>(.*)<\/title>/.exec(source) ?? [];
    expect(textOf(title ?? "")).toContain(NAME);
    const [, header] = /<nav[^>]*>(.*?)<\/nav>/s.exec(source) ?? [];
    expect(textOf(header ?? "")).toContain(NAME);
    expect(header).toContain('<img src="/docs/assets/logo"');
    expect(header).toContain('href="https://help.example.com/?a=1&#38;b=&#39;2&#39;"');
  });
});

test("/openapi.json names the product and the support", async () => {
  const { info } = (await (await fetch(new URL("/openapi.json", app.url))).json()) as { info: unknown };
  expect(info).toMatchObject({ title: NAME, contact: { name: "Support", url: SUPPORT } });
});

test("the logo is served with its type, and no script in it runs", async () => {
  const response = await fetch(new URL("/docs/assets/logo", app.url));
  expect(await response.text()).toBe(LOGO);
  expect(response.headers.get("content-type")).toBe("image/svg+xml");
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
});

test("the quick start of /docs works, also the page of errors names each error that a developer gets", async () => {
  const docs = await (await fetch(new URL("/docs", app.url))).text();
  const codeOf = exampleOf(docs);
  const env = cleanEnv({ VX_URL: app.url, VX_KEY: secret });
  for (const [id, expected] of [
    ["start-me", /"plan": ?"scale"/],
    ["start-curl", /"role": ?"assistant"/],
  ] as const) {
    const script = codeOf(id).replace("vx_live_…", secret);
    expect((await run("bash", ["-c", script], { env })).stdout).toMatch(expected);
  }
  const program = ["--input-type=module-typescript", "-e", codeOf("start-typescript")];
  expect((await run(process.execPath, program, { env })).stdout).toContain("This is a reply");
  expect(codeOf("start-grpcurl")).toContain(`}' ${new URL(app.url).host} vx.v1.GenerateService/Generate`);
  for (const [reason, { status }] of Object.entries(ERRORS))
    expect(new RegExp(`<tr id="${reason}">.*?<td data-label="Status">${status}<`, "s").test(docs), reason).toBe(
      !/operator|role|admin|report|session|sign_up|invitation|member|owner/.test(reason),
    );
  expect(docs).toContain('href="#tag/keyservice/POST/v1/keys/{key_id}:rotate">Rotate key</a>');
});

test("the table shows every model with its limits, prices and capabilities", () => {
  const rows = [...page.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = ""]) => textOf(row));
  expect(rows).toEqual([
    "Model Context Max output Input Output Can use",
    "acme/cheap 8,000 4,000 $0.25 $1.00 text",
    "acme/dear also best $0.0015 per image $0.0001 per request 200,000 64,000 $3.00 $0.30 cached $15.00 $20.00 reasoning tools JSON schema",
    "acme/vectors 8,000 – $0.02 – embeddings",
  ]);
});

/** The code of an example by its id. */
function exampleOf(source: string) {
  return (id: string) => {
    const [, code = ""] = new RegExp(`<code id="${id}">(.*?)</code>`, "s").exec(source) ?? [];
    return code.replace(/&#(\d+);/g, (_, digits: string) => String.fromCharCode(Number(digits)));
  };
}

describe("the example", () => {
  const codeOf = (id: string) => exampleOf(page)(id);
  const env = () => cleanEnv({ VX_URL: app.url, VX_KEY: secret });

  test.each([
    ["me", { plan: "scale" }],
    ["generate", { model: "acme/cheap", message: { role: "assistant" } }],
  ])("%s works in a shell", async (id, expected) => {
    const script = codeOf(id).replace("vx_live_…", secret);
    const { stdout } = await run("bash", ["-c", script], { env: env() });
    expect(JSON.parse(stdout)).toMatchObject(expected);
  });

  test.each(["openai-node", "openai-python"])("%s has the address of the server", (id) => {
    expect(codeOf(id)).toContain(`"${app.url}/v1"`);
  });

  test("all clients of Anthropic's API are shown with the address and models of the server", () => {
    const models = [{ id: "acme/dear", contextWindow: 200_000, capabilities: ["tools"] }];
    for (const { id, code } of anthropicClients(app.url, "acme/cheap", models)) expect(codeOf(id)).toBe(code);
    expect(codeOf("claude-code")).toContain("acme/dear");
  });

  test.each(["openai-node", "anthropic-node"])("%s works", async (id) => {
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", codeOf(id)], { env: env() });
    expect(stdout).toContain("This is a reply");
  });
});
