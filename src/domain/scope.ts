/** The permissions of a key, stored as one bit each. */
const SCOPE_BITS = { generate: 1, read: 2, keys: 4, webhooks: 8, billing: 16 } as const;

export type Scope = keyof typeof SCOPE_BITS;
export type ScopeBits = number;

export const SCOPES = Object.keys(SCOPE_BITS) as Scope[];
export const DEFAULT_SCOPES: readonly Scope[] = ["generate", "read"];

export function isScope(name: string): name is Scope {
  return Object.hasOwn(SCOPE_BITS, name);
}

export function scopeBit(scope: Scope): ScopeBits {
  return SCOPE_BITS[scope];
}

export function toScopeBits(scopes: readonly Scope[]): ScopeBits {
  return scopes.reduce((bits, scope) => bits | SCOPE_BITS[scope], 0);
}

export function fromScopeBits(bits: ScopeBits): Scope[] {
  return SCOPES.filter((scope) => (bits & SCOPE_BITS[scope]) !== 0);
}
