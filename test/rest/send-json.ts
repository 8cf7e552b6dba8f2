export type JsonAnswer = { readonly status: number; readonly body: unknown };

export type JsonRequest = {
  readonly verb: string;
  readonly path: string;
  readonly body?: unknown;
  /** If it is empty, no key is sent. */
  readonly secret: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
};

/** Sends a JSON request and reads the response as JSON. */
export async function sendJson(url: string, request: JsonRequest): Promise<JsonAnswer> {
  const { verb, path, body, secret, headers, signal = null } = request;
  const response = await fetch(new URL(path, url), {
    method: verb,
    signal,
    headers: {
      ...(secret === "" ? {} : { authorization: `Bearer ${secret}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}
