import fc from "fast-check";
import { expect, test } from "vitest";
import { imageOfUrl } from "../../src/domain/image.ts";
import { runs } from "../support/runs.ts";
import { words } from "../support/words.ts";

const isRefused = (host: string) => {
  try {
    imageOfUrl(`https://${host}/a.png`, "url");
    return false;
  } catch {
    return true;
  }
};

test.each(
  words(`
    intranet localhost a.localhost LOCALHOST ｌｏｃａｌｈｏｓｔ %6cocalhost localhost. localhost.. localhost... localhost。。 a..example.com
    .example.com metadata.google.internal metadata.google.internal.. printer.local 100.100.100.200 255.255.255.255 127.0.0.1..
    0x7f.0.0.1.. ①②⑦.⓪.⓪.① 127.0.0.1:443 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:0:127.0.0.1] [::127.0.0.1]
    [64:ff9b::7f00:1] [2002:7f00:1::] [2001:0:4136:e378:8000:63bf:80ff:fffe] [fd00::1] [fe80::1] [fe80::1%25eth0]
  `),
)("an image on the host %s inside a network is refused", (host) => {
  expect(isRefused(host)).toBe(true);
});

test.each(["example.com", "example.com.", "1.1.1.1", "[2606:4700::1111]", "bücher.example", "8.8.8.8"])(
  "an image on the public host %s is accepted",
  (host) => {
    expect(isRefused(host)).toBe(false);
  },
);

const octet = fc.nat({ max: 255 });
const privateAddress = fc.oneof(
  fc.tuple(fc.constantFrom(0, 10, 127), octet, octet, octet),
  fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
  fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
);
const NOTATIONS = [
  (value: number) => `${value}`,
  (value: number) => `0x${value.toString(16)}`,
  (value: number) => `0${value.toString(8)}`,
];

/** Every notation of an IPv4 address that URLs can have: each number in three bases, and the last ones joined. */
const notation = fc
  .tuple(privateAddress, fc.integer({ min: 1, max: 4 }), fc.array(fc.nat({ max: 2 }), { minLength: 4, maxLength: 4 }))
  .map(([address, parts, bases]) => {
    const rest = address.slice(parts - 1).reduce((sum, value) => sum * 256 + value, 0);
    const numbers = [...address.slice(0, parts - 1), rest];
    return numbers.map((value, i) => NOTATIONS[bases[i] ?? 0]?.(value)).join(".");
  });

test("a private IPv4 address is refused in every notation, also with dots at its end or as an IPv6 address", () => {
  fc.assert(
    fc.property(notation, fc.constantFrom("", ".", "..", "。"), (host, end) => {
      expect(isRefused(`${host}${end}`)).toBe(true);
    }),
    { numRuns: runs(500) },
  );
  fc.assert(
    fc.property(privateAddress, fc.constantFrom("::ffff:", "::", "64:ff9b::"), (address, prefix) => {
      expect(isRefused(`[${prefix}${address.join(".")}]`)).toBe(true);
    }),
    { numRuns: runs(200) },
  );
});
