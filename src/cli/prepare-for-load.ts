import { collectGarbage, letHeapGrow } from "./heap-growth.ts";

/** Call this when the server is ready, before its first call. */
export async function prepareForLoad(): Promise<void> {
  await collectGarbage();
  letHeapGrow();
}
