import { writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../../support/app.ts";
import { BrowserJar } from "../../support/browser-jar.ts";
import { createCertificate } from "../../support/certificate.ts";
import { CLIENT, IdentityProvider } from "../../support/identity-provider.ts";
import { bearer } from "../../support/protocols.ts";
import { createTemporaryFolder } from "../../support/temporary-folder.ts";

// Two servers with TLS and one database, behind one address: like workers, they share nothing else.

const HOST = "console.example";
const folder = createTemporaryFolder("sign-in-servers");
let provider: IdentityProvider;
let first: TestApp;
let second: TestApp;

beforeAll(async () => {
  const { cert, key } = createCertificate();
  writeFileSync(join(folder.path, "cert.pem"), cert);
  writeFileSync(join(folder.path, "key.pem"), key);
  provider = await IdentityProvider.start();
  const env = {
    VX_ADMIN_TLS_CERT: join(folder.path, "cert.pem"),
    VX_ADMIN_TLS_KEY: join(folder.path, "key.pem"),
    VX_OIDC_ISSUER: provider.issuer,
    VX_OIDC_CLIENT_ID: CLIENT.id,
    VX_OIDC_CLIENT_SECRET: CLIENT.secret,
  };
  first = await startTestApp({ env });
  second = await startTestApp({ env, database: first.database });
  provider.register(`https://${HOST}/auth/callback`);
  const created = await send(first, "/vx.admin.v1.AdminService/CreateOperator", {
    method: "POST",
    headers: { ...bearer(OPERATOR_TOKEN), "content-type": "application/json" },
    body: JSON.stringify({ name: "ada", role: "support", email: "ada@example.com" }),
  });
  expect(created.status).toBe(200);
});
afterAll(async () => {
  await second.stop();
  await first.stop();
  await provider.stop();
  folder.remove();
});

type Sent = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string };

async function send(app: TestApp, path: string, { method = "GET", headers = {}, body }: Sent = {}) {
  return await new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    const options = {
      method,
      headers: { host: HOST, ...headers },
      rejectUnauthorized: false,
      agent: false,
    };
    const call = request(new URL(path, app.adminUrl), options, (response) => {
      const { statusCode = 0, headers } = response;
      text(response).then((body) => resolve({ status: statusCode, headers, text: body }), reject);
    });
    call.on("error", reject);
    call.end(body);
  });
}

/** The cookies that a response sets, as a browser sends them. */
function cookiesOf({ headers }: { headers: IncomingHttpHeaders }): string {
  return (headers["set-cookie"] ?? []).map((cookie) => cookie.split(";", 1)[0]).join("; ");
}

/** Begins a sign-in at a server. Returns the path of the redirect back to vx, and the cookie of the browser. */
async function begin(app: TestApp) {
  Object.assign(provider.behaviour, { subject: "ada", email: "ada@example.com" });
  const started = await send(app, "/auth/sign-in");
  const { location = "" } = started.headers;
  const returned = new URL(await new BrowserJar().follow(location, `https://${HOST}/auth/callback`));
  return { path: returned.pathname + returned.search, cookie: cookiesOf(started) };
}

test("a sign-in that begins at one server ends at another, and its session is valid at both", async () => {
  const { path, cookie } = await begin(first);
  expect(cookie).toMatch(/^__Host-vx_sign_in=/);
  const finished = await send(second, path, { headers: { cookie } });
  expect([finished.status, finished.headers.location]).toEqual([303, "/"]);
  const session = cookiesOf(finished).replace(/^.*(__Host-vx_session=)/, "$1");
  expect(session).toMatch(/^__Host-vx_session=vxs_\w+$/);
  for (const app of [first, second]) {
    const call = await send(app, "/vx.admin.v1.AdminService/ListPlans", {
      method: "POST",
      headers: {
        cookie: session,
        origin: `https://${HOST}`,
        "sec-fetch-site": "same-origin",
        "connect-protocol-version": "1",
        "content-type": "application/json",
      },
      body: "{}",
    });
    expect(call.status).toBe(200);
  }
});

test("a sign-in while the database fails gets a page with 503, and the next one works", async () => {
  const { owner } = first.database;
  const broken = await begin(first);
  // The error of a PostgreSQL that shuts down.
  await owner.unsafe(`
    CREATE FUNCTION vx.shut_down() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''57P01''; END';
    CREATE TRIGGER shut_down BEFORE INSERT ON vx.operator_sessions EXECUTE FUNCTION vx.shut_down()`);
  const failed = await send(second, broken.path, { headers: { cookie: broken.cookie } });
  await owner.unsafe("DROP FUNCTION vx.shut_down CASCADE");
  expect([failed.status, failed.headers["content-type"]]).toEqual([503, "text/html; charset=utf-8"]);
  expect(failed.text).toContain("The database does not respond");
  expect(cookiesOf(failed)).not.toContain("vx_session");
  const { path, cookie } = await begin(second);
  expect((await send(first, path, { headers: { cookie } })).status).toBe(303);
});
