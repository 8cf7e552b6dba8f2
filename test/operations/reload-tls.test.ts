import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { createCertificate } from "../support/certificate.ts";
import { createTestDatabase } from "../support/database.ts";
import { modelsYaml } from "../support/models.ts";
import { bearer } from "../support/protocols.ts";
import { inDataFolder, ready, start, startHere, useDataFolder } from "./server-process.ts";

useDataFolder();

type Certificate = ReturnType<typeof createCertificate>;

function write(name: string, { cert, key }: Certificate): void {
  writeFileSync(inDataFolder(`${name}.crt`), cert);
  writeFileSync(inDataFolder(`${name}.key`), key);
}

/** A connection that trusts only this certificate. */
async function open(url: string, { cert }: Certificate): Promise<TLSSocket> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", ca: cert, servername: "localhost" });
  await once(socket, "secureConnect");
  return socket;
}

async function answersOn(socket: TLSSocket): Promise<void> {
  socket.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [bytes] = await once(socket, "data");
  expect(String(bytes)).toMatch(/^HTTP\/1\.1 200 /);
}

/** Over a new connection, so that every worker is queried. */
async function get(url: string, { cert }: Certificate, secret = ""): Promise<string> {
  const call = request(url, { ca: cert, servername: "localhost", agent: false, headers: bearer(secret) }).end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  return await text(response);
}

const isServed = (url: string, certificate: Certificate) => get(`${url}/livez`, certificate);

/** A server with these settings: how it is reloaded, and how many processes read the files of the public listener. */
async function startHereWith(env: Record<string, string>) {
  const { started, demoKey, logText, end } = startHere(env);
  const { url, adminUrl, reload } = await started;
  const secret = demoKey();
  return { url, adminUrl, secret, workers: 1, log: logText, requestReload: reload as () => unknown, end };
}

async function startWorkersWith(env: Record<string, string>) {
  const server = start({ ...env, VX_WORKERS: "2" });
  const url = await server.line(ready);
  const adminUrl = server.adminUrl();
  const secret = await server.line(/(vx_live_\w+)/);
  const requestReload = () => server.child.kill("SIGHUP");
  const end = async () => expect(await server.end("SIGTERM")).toBe(0);
  return { url, adminUrl, secret, workers: 2, log: server.stderr, requestReload, end };
}

test.each([
  { processes: "one process", begin: startHereWith },
  { processes: "worker processes", begin: startWorkersWith },
])(
  "with $processes, a reload reads the models and the certificates of both listeners, and open connections continue",
  async ({ begin }) => {
    const [first, second, admin, nextAdmin] = [0, 1, 2, 3].map(createCertificate) as [
      Certificate,
      Certificate,
      Certificate,
      Certificate,
    ];
    write("public", first);
    write("admin", admin);
    writeFileSync(inDataFolder("models.yaml"), modelsYaml(["first"]));
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { url, adminUrl, secret, workers, log, requestReload, end } = await begin({
      DATABASE_URL: database.url,
      VX_SEED_DEMO: "1",
      VX_MODELS: inDataFolder("models.yaml"),
      VX_TLS_CERT: inDataFolder("public.crt"),
      VX_TLS_KEY: inDataFolder("public.key"),
      VX_ADMIN_TLS_CERT: inDataFolder("admin.crt"),
      VX_ADMIN_TLS_KEY: inDataFolder("admin.key"),
    });
    expect([url, adminUrl]).toEqual([expect.stringMatching(/^https:/), expect.stringMatching(/^https:/)]);
    const logged = (text: string) => log().split(text).length - 1;
    const before = await Promise.all([open(url, first), open(adminUrl, admin)]);

    // A certificate whose key is not written yet, and an unreadable one.
    writeFileSync(inDataFolder("public.crt"), second.cert);
    rmSync(inDataFolder("admin.key"));
    requestReload();
    await vi.waitFor(() => expect(logged("the previous one stays in use")).toBe(workers + 1));
    expect(log()).toContain("VX_TLS_KEY: must contain the unencrypted private key of");
    expect(log()).toMatch(/VX_ADMIN_TLS_KEY: \S+ cannot be read: no such file or directory \(ENOENT\)/);
    for (let i = 0; i < 2 * workers; i++) await isServed(url, first);
    await isServed(adminUrl, admin);

    write("public", second);
    write("admin", nextAdmin);
    writeFileSync(inDataFolder("models.yaml"), modelsYaml(["second"]));
    requestReload();
    await vi.waitFor(() => expect(logged("reloaded TLS certificate")).toBe(workers + 1));
    // The process that starts the workers loads the models for the operator API. All read the models last.
    const processes = workers === 1 ? 1 : workers + 1;
    await vi.waitFor(() => expect(logged("reloaded models")).toBe(2 * processes));
    for (let i = 0; i < 2 * workers; i++) {
      const { data } = JSON.parse(await get(`${url}/v1/models`, second, secret)) as { data: { id: string }[] };
      expect(data.map(({ id }) => id)).toEqual(["second"]);
    }
    // They register the new prices at the same time.
    const versions = await database.owner`SELECT model, version FROM vx.price_versions ORDER BY model`;
    expect(versions).toEqual([
      { model: "first", version: 1 },
      { model: "second", version: 1 },
    ]);
    await isServed(adminUrl, nextAdmin);
    await expect(isServed(url, first)).rejects.toThrow(/self-signed|unable to verify/);
    for (const socket of before) await answersOn(socket);
    await end();
  },
);
