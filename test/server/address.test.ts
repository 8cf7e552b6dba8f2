import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Catalog } from "../../src/models/catalog.ts";
import { homePage } from "../../src/server/pages/home-page.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createCertificate } from "../support/certificate.ts";
import { createModelsFile } from "../support/models.ts";
import { PRODUCT } from "../support/product.ts";
import { sendHttp1, sendHttp2 } from "../support/raw.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const model = (id: string, price: number) =>
  `  - {id: "${id}", context_window: 5000, max_output_tokens: 50, input_micros_per_million_tokens: ${price}, output_micros_per_million_tokens: 1, upstream: {kind: sandbox}}`;
const file = createModelsFile(`models:\n${model("acme/dear", 9_000_000)}\n${model("acme/cheap:v2", 1_000_000)}\n`);

let app: TestApp;

beforeAll(async () => {
  app = await startTestApp({ env: { VX_MODELS: file.path } });
});
afterAll(async () => {
  await app.stop();
  file.remove();
});

const ADDRESSED = ["/", "/openapi.json"] as const;

async function shownTo(path: string, headers: Record<string, string>): Promise<string | undefined> {
  const { status, body } = await sendHttp1(app.url, { method: "GET", path, headers });
  expect(status).toBe(200);
  return urlIn(path, body.toString());
}

function urlIn(path: string, page: string): string | undefined {
  if (path === "/openapi.json") return JSON.parse(page).servers[0].url;
  return /VX_URL=(\S+)/.exec(page)?.[1];
}

test("the document has the host of the request too", async () => {
  expect(await shownTo("/openapi.json", { host: "api.example.com" })).toBe("http://api.example.com");
});

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
    const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.0\r\n\r\n`);
    const [, body = ""] = (await text(socket)).split("\r\n\r\n");
    expect(urlIn(path, body)).toBe(app.url);
  });

  test("is the :authority of an HTTP/2 request", async () => {
    const headers = { ":authority": "api.example.com" };
    const { body } = await sendHttp2(app.url, { method: "GET", path, headers });
    expect(urlIn(path, body.toString())).toBe("http://api.example.com");
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

test("over TLS the address is https", async () => {
  const folder = createTemporaryFolder("page-tls");
  const { cert, key } = createCertificate();
  const [certPath, keyPath] = [join(folder.path, "cert.pem"), join(folder.path, "key.pem")];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  const { request } = await import("node:https");
  const secure = await startTestApp({
    database: app.database,
    env: { VX_TLS_CERT: certPath, VX_TLS_KEY: keyPath },
  });
  try {
    const page = await new Promise<string>((resolve, reject) => {
      const options = { ca: cert, servername: "localhost", agent: false };
      request(secure.url, options, (response) => text(response).then(resolve, reject))
        .on("error", reject)
        .end();
    });
    expect(urlIn("/", page)).toBe(secure.url);
  } finally {
    await secure.stop();
    folder.remove();
  }
});

describe("the models of the examples", () => {
  test("are the configured ones: the cheapest of them", async () => {
    for (const path of ADDRESSED) {
      const page = (await sendHttp1(app.url, { method: "GET", path })).body.toString();
      expect(page).toContain('"model": "acme/cheap:v2"');
      expect(page).not.toContain("sandbox");
    }
  });

  test("have their own limits and prices in the document", async () => {
    const { body } = await sendHttp1(app.url, { method: "GET", path: "/openapi.json" });
    const { paths, components } = JSON.parse(body.toString());
    const { example } = paths["/v1/models"].get.responses["200"].content["application/json"];
    expect(example.data).toMatchObject([
      { id: "acme/cheap:v2", context_window: 5_000, input_micros_per_million_tokens: 1_000_000 },
    ]);
    const generated = paths["/v1/generate"].post.responses["200"].content["application/json"].examples.Simple.value;
    expect(generated).toMatchObject({ usage: { cost_micros: 22 }, balance_micros: 9_999_978 });
    const { message } = components.examples.context_length_exceeded.value.error;
    expect(message).toContain('the context window of "acme/cheap:v2" has 5000');
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
