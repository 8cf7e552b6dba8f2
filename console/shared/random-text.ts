/** For idempotency keys: crypto.randomUUID is missing on pages that are neither secure nor local. */
export function randomText(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
}
