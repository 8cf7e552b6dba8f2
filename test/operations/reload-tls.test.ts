import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect, type TLSSocket } from "node:tls";
import { describe, expect, test, vi } from "vitest";
import { createCertificate } from "../support/certificate.ts";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";
import { inDataFolder, ready, start, useDataFolder } from "./server-process.ts";

useDataFolder();

const database = started(() => createTestDatabase());

type Certificate = ReturnType<typeof createCertificate>;

function write(name: string, { cert, key }: Certificate): void {
  writeFileSync(inDataFolder(`${name}.crt`), cert);
  writeFileSync(inDataFolder(`${name}.key`), key);
}

/** A connection that trusts only this certificate. */
async function open(url: string, { cert }: Certificate): Promise<TLSSocket> {
  const socket = connect({
    port: Number(new URL(url).port),
    host: "127.0.0.1",
    ca: cert,
    servername: "localhost",
  });
  await once(socket, "secureConnect");
  return socket;
}

async function answersOn(socket: TLSSocket): Promise<void> {
  socket.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [bytes] = await once(socket, "data");
  expect(String(bytes)).toMatch(/^HTTP\/1\.1 200 /);
}

async function isServed(url: string, { cert }: Certificate): Promise<void> {
  const call = request(`${url}/livez`, { ca: cert, servername: "localhost", agent: false }).end();
  const [response] = await once(call, "response");
  expect(response.resume().statusCode).toBe(200);
}

describe.each([1, 2])("with %i server process(es)", (workers) => {
  test("SIGHUP reloads the certificates of both listeners, and open connections continue", async () => {
    const [first, second, admin, nextAdmin] = [0, 1, 2, 3].map(createCertificate) as [
      Certificate,
      Certificate,
      Certificate,
      Certificate,
    ];
    write("public", first);
    write("admin", admin);
    const server = start({
      DATABASE_URL: database.url,
      VX_WORKERS: String(workers),
      VX_TLS_CERT: inDataFolder("public.crt"),
      VX_TLS_KEY: inDataFolder("public.key"),
      VX_ADMIN_TLS_CERT: inDataFolder("admin.crt"),
      VX_ADMIN_TLS_KEY: inDataFolder("admin.key"),
    });
    const url = await server.line(ready);
    expect(url).toMatch(/^https:/);
    const adminUrl = /"admin":"(https:[^"]+)"/.exec(server.stderr())?.[1] as string;
    const logged = (text: string) => server.stderr().split(text).length - 1;
    const before = await Promise.all([open(url, first), open(adminUrl, admin)]);

    // A certificate whose key is not written yet, and an unreadable one.
    writeFileSync(inDataFolder("public.crt"), second.cert);
    rmSync(inDataFolder("admin.key"));
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("the previous one stays in use")).toBe(workers + 1));
    expect(server.stderr()).toContain("VX_TLS_KEY: must contain the unencrypted private key of");
    expect(server.stderr()).toMatch(
      /VX_ADMIN_TLS_KEY: \S+ cannot be read: no such file or directory \(ENOENT\)/,
    );
    for (let i = 0; i < 2 * workers; i++) await isServed(url, first);
    await isServed(adminUrl, admin);

    write("public", second);
    write("admin", nextAdmin);
    server.child.kill("SIGHUP");
    await vi.waitFor(() => expect(logged("reloaded TLS certificate")).toBe(workers + 1));
    for (let i = 0; i < 2 * workers; i++) await isServed(url, second);
    await isServed(adminUrl, nextAdmin);
    await expect(isServed(url, first)).rejects.toThrow(/self-signed|unable to verify/);
    for (const socket of before) await answersOn(socket);
    expect(await server.end("SIGTERM")).toBe(0);
  });
});
