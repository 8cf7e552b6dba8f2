import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { talk } from "../support/tcp.ts";

const app = useTestApp();
const key = useTestKey(app);

const get = async (target: string, host = "vx") =>
  (
    await talk(
      app.url,
      `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${key.secret}\r\nconnection: close\r\n\r\n`,
    )
  ).text;

// RFC 9112, 3.2.2: servers must accept it, and its host counts.
test.each([
  ["http://vx.example/v1/me", /^HTTP\/1\.1 200 [\s\S]*"plan"/],
  ["HTTPS://vx.example:443/v1/me", /^HTTP\/1\.1 200 [\s\S]*"plan"/],
  ["http://vx.example/v1/keys?page_size=1", /^HTTP\/1\.1 200 [\s\S]*"api_keys"/],
  ["http://vx.example/v1/keys?page_size=-1", /^HTTP\/1\.1 400 [\s\S]*"page_size"/],
  ["http://vx.example", /^HTTP\/1\.1 200 /],
  ["http://vx.example?x=1", /^HTTP\/1\.1 200 /],
  ["http://vx.example/vx.v1.MeService/GetMe?connect=v1&encoding=json&message=%7B%7D", /^HTTP\/1\.1 200 [\s\S]*"plan"/],
  ["http://{}/v1/me", /^HTTP\/1\.1 400 /],
  ["ftp://vx.example/v1/me", /^HTTP\/1\.1 404 /],
])("GET %s", async (target, answer) => {
  expect(await get(target)).toMatch(answer);
});

test("the Host header is ignored", async () => {
  expect(await get("http://vx.example/v1/me", "{}")).toMatch(/^HTTP\/1\.1 200 /);
});
