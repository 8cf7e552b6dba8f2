import { writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { TEST_CALLER } from "../support/action.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { BrowserJar } from "../support/browser-jar.ts";
import { createCertificate } from "../support/certificate.ts";
import { CLIENT, IdentityProvider } from "../support/identity-provider.ts";
import { started } from "../support/started.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

// Two servers with one database and one address, the first with TLS, the second behind a proxy with TLS: they share nothing else.

const HOST = "console.example";
const folder = createTemporaryFolder("sign-in-servers");
afterAll(folder.remove);
// The failed callbacks of a minute are counted, and a server takes its clock when it starts.
vi.useFakeTimers({ toFake: ["Date"] });
afterAll(() => vi.useRealTimers());
const provider = started(() => IdentityProvider.start());
const start = (env: Record<string, string>, database?: TestApp["database"]) => {
  const client = { VX_OIDC_CLIENT_ID: CLIENT.id, VX_OIDC_CLIENT_SECRET: CLIENT.secret };
  return startTestApp({ env: { VX_OIDC_ISSUER: provider.issuer, ...client, ...env }, ...(database && { database }) });
};
const first = started(() => {
  const files = { VX_ADMIN_TLS_CERT: join(folder.path, "cert.pem"), VX_ADMIN_TLS_KEY: join(folder.path, "key.pem") };
  const { cert, key } = createCertificate();
  writeFileSync(files.VX_ADMIN_TLS_CERT, cert);
  writeFileSync(files.VX_ADMIN_TLS_KEY, key);
  return start(files);
});
const second = started(() => start({ VX_ADMIN_URL: `https://${HOST}`, VX_AUTH_FAILURES_PER_MINUTE: "2" }, first.database));

beforeAll(async () => {
  provider.register(`https://${HOST}/auth/callback`);
  Object.assign(provider.behaviour, { subject: "ada", email: "ada@example.com" });
  await first.database.owner`
    SELECT vx.create_operator(${TEST_CALLER}, 'op_ada', 'ada', 'support', 'ada@example.com', sha256('ada'))`;
});

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

async function send({ adminUrl }: TestApp, path: string, headers: Record<string, string> = {}, body?: string): Promise<Answer> {
  const url = new URL(path, adminUrl);
  const method = body === undefined ? "GET" : "POST";
  const options = { method, headers: { host: HOST, ...headers }, rejectUnauthorized: false, agent: false };
  return await new Promise((resolve, reject) => {
    const call = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options, (response) => {
      const { statusCode: status = 0, headers } = response;
      text(response).then((answered) => resolve({ status, headers, text: answered }), reject);
    });
    call.on("error", reject).end(body);
  });
}

/** The cookies that a response sets, as a browser sends them. */
function cookiesOf({ headers }: Answer): string {
  return (headers["set-cookie"] ?? []).map((cookie) => cookie.split(";", 1)[0]).join("; ");
}

/** Begins a sign-in at a server. Returns the path of the redirect back to vx, and the cookie of the browser. */
async function begin(app: TestApp, headers = {}) {
  const started = await send(app, "/auth/sign-in", headers);
  const returned = new URL(await new BrowserJar().follow(started.headers.location ?? "", `https://${HOST}/auth/callback`));
  return { path: returned.pathname + returned.search, cookie: cookiesOf(started), setCookie: started.headers["set-cookie"] };
}

test("a sign-in that begins at one server ends at another, and its session is valid at both", async () => {
  const { path, cookie } = await begin(first);
  expect(cookie).toMatch(/^__Host-vx_sign_in=/);
  const finished = await send(second, path, { cookie });
  expect([finished.status, finished.headers.location]).toEqual([303, "/"]);
  const session = cookiesOf(finished).replace(/^.*(__Host-vx_session=)/, "$1");
  expect(session).toMatch(/^__Host-vx_session=vxs_\w+$/);
  const page = { cookie: session, origin: `https://${HOST}`, "sec-fetch-site": "same-origin", "connect-protocol-version": "1" };
  for (const app of [first, second]) {
    const { status } = await send(
      app,
      "/vx.admin.v1.AdminService/ListPlans",
      { ...page, "content-type": "application/json" },
      "{}",
    );
    expect(status).toBe(200);
  }
});

test("an https address makes the cookies secure and names the redirect URI, whatever the Host header", async () => {
  const { setCookie } = await begin(second, { host: "other.example" });
  expect(setCookie).toEqual([expect.stringMatching(/^__Host-vx_sign_in=.*; Path=\/; .*; HttpOnly; SameSite=Lax; Secure$/)]);
});

test("a sign-in while the database fails gets a page with 503, and the next one works", async () => {
  const { owner } = first.database;
  const broken = await begin(first);
  // The error of a PostgreSQL that shuts down.
  await owner.unsafe(`
    CREATE FUNCTION vx.shut_down() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''57P01''; END';
    CREATE TRIGGER shut_down BEFORE INSERT ON vx.operator_sessions EXECUTE FUNCTION vx.shut_down()`);
  const failed = await send(second, broken.path, { cookie: broken.cookie });
  await owner.unsafe("DROP FUNCTION vx.shut_down CASCADE");
  expect([failed.status, failed.headers["content-type"]]).toEqual([503, "text/html; charset=utf-8"]);
  expect(failed.text).toContain("The database does not respond");
  expect(cookiesOf(failed)).not.toContain("vx_session");
  const { path, cookie } = await begin(second);
  expect((await send(first, path, { cookie })).status).toBe(303);
});

test("failed callbacks of an address are limited, so that guessing does not load the provider", async () => {
  const statuses = [];
  for (let i = 0; i < 4; i++) {
    const headers = { cookie: `__Host-vx_sign_in=guess-${i}` };
    statuses.push((await send(second, "/auth/callback?code=forged&state=forged", headers)).status);
  }
  expect(statuses).toEqual([400, 400, 429, 429]);
});
