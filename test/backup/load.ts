import { bearer } from "../support/protocols.ts";

export type Load = {
  /** The ids of the charged calls, in the order of their answers. */
  readonly charged: readonly string[];
  /** The answers that were not charged. */
  readonly refused: readonly unknown[];
  reached(count: number): Promise<void>;
  stop(): Promise<void>;
};

/** Calls one after the other on each of four connections, until a call fails. */
export function startLoad(url: string, secret: string): Load {
  const charged: string[] = [];
  const refused: unknown[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let isStopped = false;
  const call = async () => {
    const response = await fetch(`${url}/v1/generate`, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(secret) },
      body: JSON.stringify({ model: "vx-sandbox-small", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }),
    });
    const answer = (await response.json()) as { id?: string };
    if (answer.id !== undefined) charged.push(answer.id);
    else {
      refused.push(answer);
      isStopped = true;
    }
    for (const { count, resolve } of waiting) if (charged.length >= count || isStopped) resolve();
  };
  const lines = Array.from({ length: 4 }, async () => {
    while (!isStopped) await call();
  });
  return {
    charged,
    refused,
    reached: (count) =>
      new Promise<void>((resolve) => {
        if (charged.length >= count || isStopped) resolve();
        else waiting.push({ count, resolve });
      }),
    stop: async () => {
      isStopped = true;
      await Promise.all(lines);
    },
  };
}
