type KeySource = {
  readonly idempotencyKey?: string | undefined;
  readonly headers?: ConstructorParameters<typeof Headers>[0] | undefined;
};

/** The key that the caller gave as an option or as a header. Undefined if it is empty, which means none. */
export function givenIdempotencyKey({ idempotencyKey, headers }: KeySource): string | undefined {
  return idempotencyKey || new Headers(headers).get("idempotency-key") || undefined;
}

/** A key of 128 random bits. It is no secret: it only has to differ from the other keys of the account. */
export function newIdempotencyKey(): string {
  const bytes = new Uint8Array(16);
  // Node 18 has no global `crypto`.
  const source = globalThis.crypto as typeof globalThis.crypto | undefined;
  if (source) source.getRandomValues(bytes);
  else for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(Math.random() * 256);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
