import { Resolver } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AddressRanges } from "../../src/domain/network.ts";
import { DeliveryAddresses, REFUSED_ADDRESS } from "../../src/webhooks/addresses.ts";
import { Sender } from "../../src/webhooks/sender.ts";
import { NameServer } from "../support/name-server.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const SECRETS = "whsec_RXhhbXBsZUV4YW1wbGVFeGFtcGxlRXhhbXBsZUV4YW0=";
const nameServer = new NameServer();
const receiver = new WebhookReceiver();
const strict = new DeliveryAddresses(undefined, () => false);
let addresses: DeliveryAddresses;
let sender: Sender;
let ownPort = 0;

beforeAll(async () => {
  await receiver.start();
  addresses = new DeliveryAddresses(new AddressRanges("127.0.0.1/32"), (port) => port === ownPort, await nameServer.start());
  sender = new Sender(addresses, "test", Date.now);
});
afterAll(async () => {
  await sender.close();
  await receiver.stop();
  nameServer.stop();
});

/** The addresses to which a connection may be made. */
const resolve = (host: string) =>
  new Promise<unknown>((done) => {
    addresses.lookup(new URL(`https://${host}`))(host, { all: true }, (error, found) => done(error ? error.message : found));
  });

const sendBy = (by: Sender, url: string) => by.send({ url, secrets: SECRETS }, "evt_1", "{}", new AbortController().signal);
const send = () => sendBy(sender, `http://name.test:${receiver.port}/`);

test("a name with public and private addresses is connected to the public ones only", async () => {
  nameServer.names.set("mixed.test", ["10.0.0.1", "8.8.8.8", "169.254.169.254", "1.1.1.1"]);
  expect(await resolve("mixed.test")).toEqual([
    { address: "8.8.8.8", family: 4 },
    { address: "1.1.1.1", family: 4 },
  ]);
});

test.each(["10.0.0.1", "127.0.0.2", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"])(
  "a name with the address %s is refused",
  async (address) => {
    nameServer.names.set("private.test", [address]);
    expect(await resolve("private.test")).toBe(REFUSED_ADDRESS);
  },
);

test.each([
  [
    "https://10.0.0.1/",
    "https://0.0.0.0/",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/",
    "https://255.255.255.255/",
  ],
  // Other forms of an IPv4 address.
  ["https://127.1/", "https://0x7f000001/", "https://0177.0.0.1/", "https://2130706433/", "https://0x7f.0.00000.1/"],
  [
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://127\u30020\u30020\u30021/",
    "https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
  ],
  ["https://[::1]/", "https://[::]/", "https://[fd00::1]/", "https://[fe80::1]/", "https://[ff02::1]/", "https://[3fff::1]/"],
  // An IPv4 address in IPv6, with NAT64, 6to4 and Teredo.
  ["https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::127.0.0.1]/", "https://[64:ff9b::7f00:1]/"],
  ["https://[64:ff9b:1::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001:0:7f00:1::]/"],
])("private and reserved addresses are refused: %s", (...urls) => {
  for (const url of urls) expect(strict.readUrl(url), url).toEqual({ problem: REFUSED_ADDRESS });
});

test.each([
  ["http://hooks.example.com/", "must begin with https://"],
  ["https://user@hooks.example.com/", "must have no user name, password or fragment"],
  ["https://:secret@hooks.example.com/", "must have no user name, password or fragment"],
  ["https://hooks.example.com/#x", "must have no user name, password or fragment"],
  ["file:///etc/passwd", expect.stringContaining("must be an address")],
  ["hooks.example.com", expect.stringContaining("must be an address")],
  ["https://[fe80::1%25eth0]/", expect.stringContaining("must be an address")],
])("%s is refused", (url, problem) => {
  expect(strict.readUrl(url)).toEqual({ problem });
});

test("a name that does not exist says so", async () => {
  expect(await resolve("absent.test")).toContain("ENOTFOUND");
});

test("a name that changes after it was checked does not reach its new address", async () => {
  nameServer.names.set("name.test", ["127.0.0.1"]);
  receiver.respond = (response) => response.writeHead(204, { connection: "close" }).end();
  expect(await send()).toMatchObject({ status: 204, error: "" });
  nameServer.names.set("name.test", ["127.0.0.2"]);
  expect(await send()).toMatchObject({ status: undefined, error: REFUSED_ADDRESS });
  expect(receiver.received).toHaveLength(1);
});

test.each(["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", ...interfaceAddresses()])(
  "the ports on which the server listens receive nothing at %s, although the address is allowed",
  (address) => {
    const own = new DeliveryAddresses(new AddressRanges("0.0.0.0/0,::/0"), (port) => port === 8080 || port === 443);
    const host = isIPv6(address) ? `[${address}]` : address;
    expect(own.readUrl(`http://${host}:8080/`)).toEqual({ problem: REFUSED_ADDRESS });
    expect(own.readUrl(`https://${host}/`)).toEqual({ problem: REFUSED_ADDRESS });
    expect(own.readUrl(`http://${host}/`)).toEqual({ url: expect.any(String) });
  },
);

test("a name with an address of this machine does not reach a port on which the server listens", async () => {
  nameServer.names.set("name.test", ["127.0.0.1"]);
  receiver.received.length = 0;
  ownPort = receiver.port;
  expect(await send()).toMatchObject({ status: undefined, error: REFUSED_ADDRESS });
  ownPort = 0;
  expect((await send()).status).toBe(204);
  expect(receiver.received).toHaveLength(1);
});

test("an answer without end takes no more than its first characters", async () => {
  nameServer.names.set("name.test", ["127.0.0.1"]);
  receiver.respond = (response) => {
    response.writeHead(200);
    const write = () => {
      while (!response.destroyed && response.write("x".repeat(10_000)));
    };
    response.on("drain", write);
    write();
  };
  expect(await send()).toMatchObject({ status: 200, error: "", answer: "x".repeat(1_000) });
});

test.each([
  ["NUL", "\0"],
  ["half of a pair", "\ud83d"],
  ["a pair where it is cut", "\u{1f600}".repeat(300)],
])("an error with %s can be stored", async (_, code) => {
  const resolver = new Resolver();
  const fail = () => Promise.reject(Object.assign(new Error("no address"), { code }));
  Object.assign(resolver, { resolve4: fail, resolve6: fail });
  const failing = new Sender(new DeliveryAddresses(undefined, () => false, resolver), "test", Date.now);
  const { error } = await sendBy(failing, "https://name.test/");
  expect(error).toContain("cannot be resolved");
  expect(error.isWellFormed() && !error.includes("\0")).toBe(true);
  await failing.close();
});

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).filter(({ internal }) => !internal).map(({ address }) => address),
  );
}
