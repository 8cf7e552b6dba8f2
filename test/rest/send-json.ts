export type JsonAnswer = { readonly status: number; readonly body: unknown };

export type JsonRequest = {
  readonly verb: string;
  readonly path: string;
  readonly body?: unknown;
  /** None where it is empty. */
  readonly secret: string;
  readonly headers?: Record<string, string>;
};

/** Asks as a program does, and reads the answer as JSON. */
export async function sendJson(url: string, request: JsonRequest): Promise<JsonAnswer> {
  const { verb, path, body, secret, headers } = request;
  const response = await fetch(new URL(path, url), {
    method: verb,
    headers: {
      ...(secret === "" ? {} : { authorization: `Bearer ${secret}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}
