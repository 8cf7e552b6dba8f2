/** An error that the operator can act on, with a one-line message. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
}

export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Returns undefined for errors with these codes; rethrows all others. */
export async function ignoring<T>(codes: readonly string[], work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codes.includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}
