import { expect, test } from "vitest";
import { readConfig } from "../../src/app/settings/config.ts";
import { ConfigError } from "../../src/app/start-error.ts";

const originsOf = (list: string) => readConfig({ VX_CORS_ORIGINS: list }).corsOrigins;

test("no origin is allowed by default", () => {
  expect(readConfig({}).corsOrigins).toEqual([]);
  expect(originsOf("")).toEqual([]);
});

test.each([
  ["https://app.example.com", ["https://app.example.com"]],
  ["http://localhost:5173, https://a.example", ["http://localhost:5173", "https://a.example"]],
  ["HTTPS://App.Example.com:443,http://a.example:80", ["https://app.example.com", "http://a.example"]],
  ["http://[::1]:3000,http://127.0.0.1:3000", ["http://[::1]:3000", "http://127.0.0.1:3000"]],
  ["https://xn--bcher-kva.example", ["https://xn--bcher-kva.example"]],
  ["capacitor://localhost,chrome-extension://abcdefghijklmnop", ["capacitor://localhost", "chrome-extension://abcdefghijklmnop"]],
])("%s is read as browsers send it", (list, origins) => {
  expect(originsOf(list)).toEqual(origins);
});

test.each([
  "*",
  "null",
  "app.example.com",
  "localhost:5173",
  "https://",
  "https://app.example.com/",
  "https://app.example.com/app",
  "https://app.example.com?a",
  "https://app.example.com#a",
  "https://*.example.com",
  "https://user@app.example.com",
  "https://app.example.com:",
  "https://app.example.com:65536",
  "https://1.2.3.256",
  "https://app example.com",
  "https://bücher.example",
  "https://a.example;https://b.example",
  ",https://a.example",
  "https://a.example,",
])("%s is an error that names the setting", (list) => {
  expect(() => originsOf(list)).toThrow(ConfigError);
  expect(() => originsOf(list)).toThrow(/^VX_CORS_ORIGINS: ".*" is not an origin; list origins such as https:/);
});
