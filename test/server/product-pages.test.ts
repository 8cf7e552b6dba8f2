import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anthropicClients } from "../../src/domain/anthropic-clients.ts";
import { ERRORS } from "../../src/domain/errors.ts";
import { Catalog } from "../../src/models/catalog.ts";
import { homePage } from "../../src/server/pages/home-page.ts";
import { useOwnApp } from "../support/app.ts";
import { cleanEnv } from "../support/clean-env.ts";
import { createModelsFile } from "../support/models.ts";
import { usePaidKey } from "../support/openai.ts";
import { PRODUCT } from "../support/product.ts";
import { type RawRequest, sendHttp1, sendHttp2 } from "../support/raw.ts";
import { talk } from "../support/tcp.ts";
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
const logo = join(folder.path, "logo.svg");
writeFileSync(logo, LOGO);
const app = useOwnApp({ env: { VX_MODELS: models.path, VX_PRODUCT_NAME: NAME, VX_PRODUCT_LOGO: logo, VX_SUPPORT_URL: SUPPORT } });
const key = usePaidKey(app);
let page: string;
beforeAll(async () => {
  page = await (await fetch(app.url)).text();
});
afterAll(() => {
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
  const env = cleanEnv({ VX_URL: app.url, VX_KEY: key.secret });
  for (const [id, expected] of [
    ["start-me", /"plan": ?"scale"/],
    ["start-curl", /"role": ?"assistant"/],
  ] as const) {
    const script = codeOf(id).replace("vx_live_…", key.secret);
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
  const env = () => cleanEnv({ VX_URL: app.url, VX_KEY: key.secret });

  test.each([
    ["me", { plan: "scale" }],
    ["generate", { model: "acme/cheap", message: { role: "assistant" } }],
  ])("%s works in a shell", async (id, expected) => {
    const script = codeOf(id).replace("vx_live_…", key.secret);
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

async function shownTo(path: string, headers: Record<string, string>): Promise<string | undefined> {
  const { status, body } = await sendHttp1(app.url, { method: "GET", path, headers });
  expect(status).toBe(200);
  return urlIn(body.toString());
}

function urlIn(page: string): string | undefined {
  return /VX_URL=(\S+)/.exec(page)?.[1];
}

describe("the server address on the page", () => {
  const path = "/";

  test.each(["api.example.com", "API.example.com:8443", "10.0.0.7:80", "[2001:db8::1]:9000", "vx_1"])(
    "is the host of the request, %s",
    async (host) => {
      expect(await shownTo(path, { host })).toBe(`http://${host}`);
    },
  );

  test.each(["$(id)", "a;b", "a&b", "a'b", "[::1]$(x)", "a:123456", "", "a%2fb", "a,b", "x".repeat(300)])(
    "is that of the socket when the host is %j",
    async (host) => {
      expect(await shownTo(path, { host })).toBe(app.url);
    },
  );

  test("is that of the socket for an HTTP/1.0 request without Host", async () => {
    const [, body = ""] = (await talk(app.url, `GET ${path} HTTP/1.0\r\n\r\n`)).text.split("\r\n\r\n");
    expect(urlIn(body)).toBe(app.url);
  });

  test("is the :authority of an HTTP/2 request", async () => {
    const headers = { ":authority": "api.example.com" };
    const { body } = await sendHttp2(app.url, { method: "GET", path, headers });
    expect(urlIn(body.toString())).toBe("http://api.example.com");
  });

  test("is https when a proxy terminates TLS", async () => {
    const host = "api.example.com";
    expect(await shownTo(path, { host, "x-forwarded-proto": "https" })).toBe("https://api.example.com");
    expect(await shownTo(path, { host, "x-forwarded-proto": "javascript" })).toBe("http://api.example.com");
  });

  test("has a separate ETag for each host", async () => {
    const tag = async (host: string) => (await sendHttp1(app.url, { method: "GET", path, headers: { host } })).headers.etag;
    const hosts = Array.from({ length: 10 }, (_, i) => `host-${i}`);
    const tags = await Promise.all(hosts.map(tag));
    expect(new Set(tags).size).toBe(hosts.length);
    expect(await Promise.all(hosts.map(tag))).toEqual(tags);
  });
});

describe("the models of the examples", () => {
  test("are the configured ones: the cheapest of them", async () => {
    for (const path of ["/", "/openapi.json"]) {
      const page = (await sendHttp1(app.url, { method: "GET", path })).body.toString();
      expect(page).toContain('"model": "acme/cheap"');
      expect(page).not.toContain("sandbox");
    }
  });

  test("have their own limits and prices in the document", async () => {
    const { body } = await sendHttp1(app.url, { method: "GET", path: "/openapi.json" });
    const { paths, components } = JSON.parse(body.toString());
    const { example } = paths["/v1/models"].get.responses["200"].content["application/json"];
    expect(example.data).toMatchObject([{ id: "acme/cheap", context_window: 8_000, input_micros_per_million_tokens: 250_000 }]);
    const generated = paths["/v1/generate"].post.responses["200"].content["application/json"].examples.Simple.value;
    expect(generated).toMatchObject({ usage: { cost_micros: 13 }, balance_micros: 9_999_987 });
    const { message } = components.examples.context_length_exceeded.value.error;
    expect(message).toContain('the context window of "acme/cheap" has 8000');
  });

  test("are a placeholder when there is none", async () => {
    const page = (await homePage(new Catalog([]).list(), PRODUCT))("http://vx.example");
    expect(page).toContain('"model": "MODEL"');
    expect(page).toContain("No model of this server generates text");
  });
});

test("values in the page are escaped", async () => {
  const page = (await homePage([], PRODUCT))(`"><script>alert('1')</script>&`);
  expect(page).not.toContain("<script>");
  expect(page).toContain("VX_URL=&#34;&#62;&#60;script&#62;");
});

describe.each([
  ["the customer page", "/account", "/account/assets/", () => app.url],
  ["the operator console", "/", "/assets/", () => app.adminUrl],
] as const)("%s", (_, path, assets, url) => {
  const get = (target: string, headers: RawRequest["headers"] = {}) => sendHttp1(url(), { method: "GET", path: target, headers });

  async function filesOf(): Promise<string[]> {
    const source = (await get(path)).body.toString();
    return [...source.matchAll(/<(?:script|link)[^>]* (?:src|href)="(\/[^"]*)"/g)].map(([, file]) => file ?? "");
  }

  test("runs only scripts and styles of this server, and is revalidated each time", async () => {
    const { status, headers, body } = await get(path);
    expect([status, headers["cache-control"], headers["set-cookie"]]).toEqual([200, "no-cache", undefined]);
    const rules = new Map(
      (headers["content-security-policy"] ?? "").split("; ").map((rule) => {
        const [name = "", ...values] = rule.split(" ");
        return [name, values.join(" ")];
      }),
    );
    expect(Object.fromEntries(rules)).toEqual({
      "default-src": "'none'",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "img-src": "'self' data:",
      "connect-src": "'self'",
      "require-trusted-types-for": "'script'",
      "trusted-types": "'none'",
    });
    expect(body.toString()).not.toMatch(/<script(?![^>]*\bsrc="\/)|<style|style=|\son\w+=|="(https?:)?\/\/(?!help)/);
  });

  test("shows the name of the product as text", async () => {
    const source = (await get(path)).body.toString();
    expect(source).not.toContain("<script>alert");
    expect(source).toContain("<title>Acme &#60;script&#62;");
  });

  test("has files that are cached forever, equal in every encoding, and found under no other name", async () => {
    const [logo, ...files] = await filesOf();
    expect(logo).toBe(`${assets}logo`);
    expect(files).toEqual([expect.stringMatching(/-[\w-]{8}\.css$/), expect.stringMatching(/-[\w-]{8}\.js$/)]);
    for (const file of files) {
      expect(file.startsWith(assets)).toBe(true);
      const plain = await get(file);
      expect([plain.status, plain.headers["cache-control"]]).toEqual([200, "public, max-age=31536000, immutable"]);
      const brotli = await get(file, { "accept-encoding": "gzip, deflate, br, zstd" });
      const gzip = await get(file, { "accept-encoding": "gzip, br;q=0" });
      expect([brotli, gzip].map(({ headers }) => headers["content-encoding"])).toEqual(["br", "gzip"]);
      for (const decompressed of [brotliDecompressSync(brotli.body), gunzipSync(gzip.body)])
        expect(decompressed.equals(plain.body)).toBe(true);
      expect((await get(file.replace(/-[\w-]{8}\./, "-00000000."))).status).toBe(404);
    }
  });

  test("needs at most 250 KB, compressed as gzip", async () => {
    const sizes = await Promise.all(
      (await filesOf()).map(async (file) => (await get(file, { "accept-encoding": "gzip" })).body.length),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(250_000);
  });

  test("names the licenses of the packages in it", async () => {
    const { status, body } = await get(`${assets}licenses.txt`);
    expect([status, body.toString()]).toEqual([200, readFileSync("gen/console/licenses.txt", "utf8")]);
    for (const name of ["preact", "uplot", "@connectrpc/connect-web", "@bufbuild/protobuf"])
      expect(body.toString()).toContain(name);
  });
});

test("each listener serves only its own page", async () => {
  const status = async (url: string, path: string) => (await sendHttp1(url, { method: "GET", path })).status;
  expect(await status(app.adminUrl, "/account")).toBe(404);
  const operatorFile = /"\/assets\/(operator-[^"]*\.js)"/.exec(await (await fetch(app.adminUrl)).text())?.[1];
  expect(operatorFile).toBeDefined();
  expect(await status(app.url, `/assets/${operatorFile}`)).toBe(404);
  expect(await status(app.url, `/account/assets/${operatorFile}`)).toBe(404);
});
