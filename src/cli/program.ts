import { serve } from "./serve.ts";

export async function runCommandLine(_args: string[]): Promise<void> {
  process.exitCode = await serve();
  if (process.exitCode !== 0) process.exit();
}
