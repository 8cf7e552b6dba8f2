import { describe, expect, test } from "vitest";
import { readConfig } from "../../src/app/settings/config.ts";
import { AddressRanges } from "../../src/domain/network.ts";
import { clientAddress, UNKNOWN_ADDRESS } from "../../src/server/http/message.ts";

const PROXY = "10.0.0.5";
const proxies = new AddressRanges("10.0.0.0/8,2001:db8:ffff::/48");

function addressOf(headers: Record<string, string[]>, remoteAddress = PROXY) {
  return clientAddress({ remoteAddress, headers: (name) => headers[name] ?? [] }, proxies);
}

describe("X-Forwarded-For", () => {
  test.each<[value: string[], address: string]>([
    [["203.0.113.7"], "203.0.113.7"],
    [["198.51.100.1, 203.0.113.7"], "203.0.113.7"],
    [["198.51.100.1", "203.0.113.7, 10.1.1.1"], "203.0.113.7"],
    [["203.0.113.7, 10.1.1.1 ,2001:db8:ffff::1"], "203.0.113.7"],
    [["10.1.1.1, 10.2.2.2"], "10.1.1.1"],
    [["203.0.113.7:4711"], "203.0.113.7"],
    [["[2001:db8::7]:4711"], "2001:db8::7"],
    [["[2001:db8::7]"], "2001:db8::7"],
    [["2001:DB8:0::7"], "2001:db8::7"],
    [["::ffff:203.0.113.7"], "203.0.113.7"],
    [["203.0.113.7, unknown"], PROXY],
    [["203.0.113.7, , 10.1.1.1"], "10.1.1.1"],
    [["203.0.113.7, 10.1.1.1, 10.2.2"], PROXY],
    [["203.0.113.999"], PROXY],
    [[""], PROXY],
  ])("%j is the address %s", (value, address) => {
    expect(addressOf({ "x-forwarded-for": value })).toBe(address);
  });
});

describe("Forwarded", () => {
  test.each<[value: string[], address: string]>([
    [["for=203.0.113.7"], "203.0.113.7"],
    [['For="203.0.113.7:80";proto=https;by=10.0.0.5'], "203.0.113.7"],
    [['for="[2001:db8::7]:4711"'], "2001:db8::7"],
    [['for="[2001:db8::7]:_port"'], "2001:db8::7"],
    [["for=198.51.100.1, for=203.0.113.7", "for=10.1.1.1"], "203.0.113.7"],
    [["proto=https ; for=203.0.113.7 ,\tfor=10.1.1.1;host=a"], "203.0.113.7"],
    [['for=203.0.113.7;host="a,b;for=198.51.100.1"'], "203.0.113.7"],
    [["for=203.0.113.7, for=_hidden"], PROXY],
    [["for=203.0.113.7, for=unknown, for=10.1.1.1"], "10.1.1.1"],
    [["for=203.0.113.7, proto=https"], PROXY],
    [["203.0.113.7"], UNKNOWN_ADDRESS],
    // A caller must not reach past the entry of the proxy with a quote, or get the address of the proxy.
    [['for=198.51.100.1;host="', "for=203.0.113.7"], UNKNOWN_ADDRESS],
    [['for=198.51.100.1;host="', 'for="[2001:db8::7]"'], UNKNOWN_ADDRESS],
  ])("%j is the address %s", (value, address) => {
    expect(addressOf({ forwarded: value })).toBe(address);
  });
});

test("a long header takes no time that grows with the square of its length", () => {
  expect(addressOf({ forwarded: [`${" ".repeat(400_000)}!`] })).toBe(UNKNOWN_ADDRESS);
  for (const part of ['for="\\', "for=a;", " ", '"', "for=10.0.0.1,"]) addressOf({ forwarded: [part.repeat(400_000)] });
});

test("the address is unknown if the two headers differ, and equal ones count", () => {
  const forwarded = ["for=203.0.113.7"];
  expect(addressOf({ forwarded, "x-forwarded-for": ["198.51.100.1"] })).toBe(UNKNOWN_ADDRESS);
  expect(addressOf({ forwarded, "x-forwarded-for": ["203.0.113.7"] })).toBe("203.0.113.7");
});

test("only a trusted proxy is believed, also one that connects over IPv6", () => {
  const headers = { "x-forwarded-for": ["203.0.113.7"] };
  expect(addressOf(headers, "198.51.100.1")).toBe("198.51.100.1");
  expect(addressOf(headers, "::ffff:10.0.0.5")).toBe("203.0.113.7");
  expect(addressOf(headers, "2001:db8:ffff::9")).toBe("203.0.113.7");
  expect(addressOf(headers, "")).toBe("");
  expect(clientAddress({ remoteAddress: PROXY, headers: () => ["203.0.113.7"] }, undefined)).toBe(PROXY);
});

test("VX_TRUSTED_PROXIES is a list of addresses and ranges, and another value stops the start", () => {
  const { trustedProxies } = readConfig({ VX_TRUSTED_PROXIES: "10.0.0.5, 2001:db8::/32" });
  expect(trustedProxies?.text).toBe("10.0.0.5/32,2001:db8::/32");
  expect(readConfig({}).trustedProxies).toBeUndefined();
  for (const list of ["10.0.0.1/8", "proxy.example", "10.0.0.1,"]) {
    expect(() => readConfig({ VX_TRUSTED_PROXIES: list })).toThrow(/^VX_TRUSTED_PROXIES: ".*" must/);
  }
});
