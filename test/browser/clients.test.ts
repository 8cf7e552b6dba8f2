import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createCertificate } from "../support/certificate.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { chargesOf, createPaidKey, SMALL } from "../support/openai.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import type { Calls, GeneratedClient, Target } from "./page/calls.ts";
import { bundlePage, type Origin, startOrigin } from "./page/origin.ts";

if (!chromiumPath) {
  console.error(
    "SKIPPED: clients in pages of other origins were tested in no browser. Install chromium, or name one in CHROMIUM.",
  );
}

const CLIENTS: readonly GeneratedClient[] = ["connect", "connect-binary", "grpc-web", "grpc-web-json"];
const GENERATE = { model: SMALL, messages: [{ role: "user", content: "[[tokens=5]]" }] };
/** The first five tokens of every reply of the sandbox. */
const REPLY = "This is a reply of";
const REQUEST_ID = expect.stringMatching(/^req_/);

describe.skipIf(!chromiumPath).each(["HTTP/1.1", "HTTP/2 with TLS"])("over %s", (version) => {
  const folder = createTemporaryFolder("browser-clients");
  let origins: { readonly allowed: Origin; readonly other: Origin };
  let app: TestApp;
  let paid: TestKey;
  let browser: BrowserContext;
  let pages: { readonly allowed: Page; readonly other: Page };

  beforeAll(async () => {
    const script = await bundlePage();
    origins = { allowed: await startOrigin(script), other: await startOrigin(script) };
    const { cert, key } = createCertificate();
    const files = { VX_TLS_CERT: join(folder.path, "cert.pem"), VX_TLS_KEY: join(folder.path, "key.pem") };
    writeFileSync(files.VX_TLS_CERT, cert);
    writeFileSync(files.VX_TLS_KEY, key);
    app = await startTestApp({ env: { VX_CORS_ORIGINS: origins.allowed.url, ...(version === "HTTP/1.1" ? {} : files) } });
    paid = await createPaidKey(operatorOf(app));
    browser = await openBrowser(join(folder.path, "profile"));
    pages = { allowed: await browser.newPage(), other: await browser.newPage() };
    await pages.allowed.goto(origins.allowed.url);
    await pages.other.goto(origins.other.url);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    await origins?.allowed.stop();
    await origins?.other.stop();
    folder.remove();
  });

  /** Makes a call in a page. */
  function call<Name extends keyof Calls>(page: Page, name: Name, ...args: Parameters<Calls[Name]>): ReturnType<Calls[Name]> {
    const list = args.map((arg) => JSON.stringify(arg) ?? "undefined").join(", ");
    return page.evaluate(`calls.${name}(${list})`) as ReturnType<Calls[Name]>;
  }

  const target = (key: string = paid.secret): Target => ({ url: app.url, key });

  /** A key whose window is full, for a call that must be refused within the same minute. */
  async function withFullWindow<Result>(run: (key: string) => Promise<Result>): Promise<Result> {
    const { secret } = await createTestKey(operatorOf(app), { rateLimitRpm: 1 });
    return await withinOneMinute(async () => {
      await call(pages.allowed, "plainFetch", target(secret), "/v1/models");
      return await run(secret);
    });
  }

  describe.each(CLIENTS)("a generated client (%s)", (client) => {
    test("receives a reply and its headers", async () => {
      const result = await call(pages.allowed, "generated", target(), client, SMALL, false);
      expect(result).toMatchObject({
        text: REPLY,
        headers: {
          "x-request-id": REQUEST_ID,
          "x-ratelimit-remaining-requests": expect.stringMatching(/^\d+$/),
          ratelimit: expect.stringMatching(/^"rpm";r=\d+;t=\d+$/),
        },
      });
    });

    test("receives a stream in pieces", async () => {
      const result = await call(pages.allowed, "generated", target(), client, SMALL, true);
      expect(result).toMatchObject({
        text: REPLY,
        pieces: expect.toSatisfy((pieces: number) => pieces > 1),
        headers: { "x-request-id": REQUEST_ID },
      });
    });

    test.each([false, true])("receives errors with their details; stream: %s", async (isStream) => {
      const unknown = await call(pages.allowed, "generated", target(), client, "no-model", isStream);
      expect(unknown).toMatchObject({ code: "NotFound", reason: "MODEL_NOT_FOUND", headers: { "x-request-id": REQUEST_ID } });
      const keyless = await call(pages.allowed, "generated", target(""), client, SMALL, isStream);
      expect(keyless).toMatchObject({
        code: "Unauthenticated",
        reason: "INVALID_API_KEY",
        headers: { "www-authenticate": "Bearer" },
      });
      const limited = await withFullWindow((key) => call(pages.allowed, "generated", target(key), client, SMALL, isStream));
      expect(limited).toMatchObject({
        code: "ResourceExhausted",
        reason: "RATE_LIMIT_EXCEEDED",
        headers: { "retry-after": expect.stringMatching(/^\d+$/), "x-ratelimit-remaining-requests": "0" },
      });
    });

    test.each([false, true])("is blocked on a page of another origin; stream: %s", async (isStream) => {
      const before = await chargesOf(operatorOf(app), paid);
      const result = await call(pages.other, "generated", target(), client, SMALL, isStream);
      expect(result).toMatchObject({ reason: undefined, headers: { "x-request-id": null } });
      expect(["Unknown", "Unavailable"]).toContain("code" in result ? result.code : "ok");
      expect(await chargesOf(operatorOf(app), paid)).toEqual(before);
    });
  });

  describe("fetch", () => {
    test("receives a reply and its headers", async () => {
      const result = await call(pages.allowed, "plainFetch", target(), "/v1/generate", {}, GENERATE);
      expect(result).toMatchObject({
        status: 200,
        text: expect.stringContaining('"cost_micros"'),
        headers: { "x-request-id": REQUEST_ID, ratelimit: expect.stringMatching(/^"rpm"/) },
      });
    });

    test("sends a key for retries, and can read that the reply was repeated", async () => {
      const once = { "idempotency-key": `page-${version}`, "x-request-id": "page-1" };
      const results = [
        await call(pages.allowed, "plainFetch", target(), "/v1/generate", once, GENERATE),
        await call(pages.allowed, "plainFetch", target(), "/v1/generate", once, GENERATE),
      ];
      expect(results.map(({ headers }) => headers?.["idempotency-replayed"])).toEqual([null, "true"]);
      expect(results.map(({ headers }) => headers?.["x-request-id"])).toEqual(["page-1", "page-1"]);
    });

    test("receives server-sent events", async () => {
      const body = { ...GENERATE, stream: true };
      const result = await call(pages.allowed, "plainFetch", target(), "/v1/generate", {}, body);
      expect(result).toMatchObject({ status: 200, text: expect.stringMatching(/data: \[DONE\]\n\n$/) });
    });

    test("receives errors and their headers", async () => {
      const keyless = await call(pages.allowed, "plainFetch", target(""), "/v1/generate", {}, GENERATE);
      expect(keyless).toMatchObject({
        status: 401,
        text: expect.stringContaining('"code":"missing_api_key"'),
        headers: { "x-request-id": REQUEST_ID, "www-authenticate": "Bearer" },
      });
      const unknown = await call(pages.allowed, "plainFetch", target(), "/v1/nothing");
      expect(unknown).toMatchObject({ status: 404, text: expect.stringContaining('"code":"not_found"') });
      const limited = await withFullWindow((key) => call(pages.allowed, "plainFetch", target(key), "/v1/generate", {}, GENERATE));
      expect(limited).toMatchObject({
        status: 429,
        headers: { "retry-after": expect.stringMatching(/^\d+$/), "x-ratelimit-remaining-requests": "0" },
      });
    });

    test("with credentials of the browser is blocked", async () => {
      const result = await call(pages.allowed, "plainFetch", target(), "/v1/me", {}, undefined, "include");
      expect(result).toMatchObject({ code: "TypeError" });
    });

    test.each(["/v1/me", "/readyz", "/openapi.json", "/nothing"])(
      "of %s is blocked on a page of another origin, with and without a preflight",
      async (path) => {
        for (const key of [paid.secret, ""]) {
          const allowed = await call(pages.allowed, "plainFetch", target(key), path);
          expect(allowed).toMatchObject({ status: expect.any(Number) });
          expect(await call(pages.other, "plainFetch", target(key), path)).toMatchObject({ code: "TypeError" });
        }
      },
    );

    test("of the operator listener is blocked", async () => {
      const operator = { url: app.adminUrl, key: "" };
      for (const page of Object.values(pages)) {
        expect(await call(page, "plainFetch", operator, "/livez")).toMatchObject({ code: "TypeError" });
      }
    });
  });

  describe("the client of this repository", () => {
    test.each([false, true])("receives a reply; stream: %s", async (isStream) => {
      expect(await call(pages.allowed, "own", target(), SMALL, isStream, true)).toMatchObject({
        text: REPLY,
        pieces: expect.toSatisfy((pieces: number) => pieces > 1 === isStream),
      });
    });

    test.each([false, true])("receives errors; stream: %s", async (isStream) => {
      expect(await call(pages.allowed, "own", target(), "no-model", isStream, true)).toMatchObject({
        code: "ModelNotFoundError",
        reason: "model_not_found",
        headers: { "x-request-id": REQUEST_ID },
      });
    });

    test("refuses to run in a page unless the page says so", async () => {
      expect(await call(pages.allowed, "own", target(), SMALL, false, false)).toMatchObject({
        code: expect.stringMatching(/^TypeError: .* set dangerouslyAllowBrowser\.$/),
      });
    });

    test("is blocked on a page of another origin", async () => {
      expect(await call(pages.other, "own", target(), SMALL, false, true)).toMatchObject({ code: "ConnectionError" });
    });
  });

  describe("the OpenAI SDK", () => {
    test.each([false, true])("receives a reply; stream: %s", async (isStream) => {
      const result = await call(pages.allowed, "openAi", target(), SMALL, isStream);
      expect(result).toMatchObject({ text: REPLY, pieces: expect.toSatisfy((pieces: number) => pieces > 1 === isStream) });
    });

    test("receives errors", async () => {
      expect(await call(pages.allowed, "openAi", target(), "no-model", false)).toMatchObject({
        code: "NotFoundError",
        reason: "model_not_found",
        headers: { "x-request-id": REQUEST_ID },
      });
    });

    test("is blocked on a page of another origin", async () => {
      expect(await call(pages.other, "openAi", target(), SMALL, false)).toMatchObject({ code: "APIConnectionError" });
    });
  });
});
