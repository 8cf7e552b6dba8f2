import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { OidcClient } from "../../src/server/sign-in/oidc-client.ts";

test.each([
  ["authorization_endpoint", "javascript:alert(1)"],
  ["authorization_endpoint", undefined],
  ["token_endpoint", "/token"],
  ["jwks_uri", "ftp://127.0.0.1/keys"],
])("a provider with the %s %s is not kept", async (name, value) => {
  let issuer = "";
  let isBroken = true;
  const server = createServer((_request, response) => {
    const document = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      ...(isBroken && { [name]: value }),
    };
    response.setHeader("content-type", "application/json").end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new OidcClient({ issuer, clientId: "vx", clientSecret: "secret" }, () => 0);
    const start = () => client.authorizationUrl("secret", "https://ops.example/auth/callback");
    await expect(start()).rejects.toMatchObject({ failure: "unreachable" });
    isBroken = false;
    expect((await start()).href).toContain(`${issuer}/authorize`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
