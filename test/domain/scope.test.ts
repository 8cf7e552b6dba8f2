import fc from "fast-check";
import { expect, test } from "vitest";
import { fromScopeBits, isScope, SCOPES, scopeBit, toScopeBits } from "../../src/domain/scope.ts";

test("scopes are restored from their bits, each once", () => {
  fc.assert(
    fc.property(fc.subarray(SCOPES), (scopes) => {
      const bits = toScopeBits([...scopes, ...scopes]);
      expect(fromScopeBits(bits)).toEqual(scopes);
      for (const scope of SCOPES) expect((bits & scopeBit(scope)) !== 0).toBe(scopes.includes(scope));
    }),
  );
});

test("the meaning of the stored bits does not change", () => {
  expect(SCOPES.map((scope) => [scope, scopeBit(scope)])).toEqual([
    ["generate", 1],
    ["read", 2],
    ["keys", 4],
    ["webhooks", 8],
    ["billing", 16],
  ]);
});

test.each(["", "READ", "admin", "toString", "__proto__", "constructor"])("%j is not a scope", (name) => {
  expect(isScope(name)).toBe(false);
});
