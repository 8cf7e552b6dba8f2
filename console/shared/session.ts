import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

const TIMEOUT_MS = 30_000;

/**
 * The connection of a signed-in viewer. The secret stays in this closure: it is never written to a cookie, a storage or
 * the URL. Without a secret, the cookie of a session identifies the viewer. `onEnd` is called when the server no longer
 * accepts it.
 */
export function createSession(
  secret: string | undefined,
  onEnd: (message: string) => void,
  interceptors: readonly Interceptor[] = [],
): Transport {
  const authenticate: Interceptor = (next) => async (request) => {
    if (secret !== undefined) request.header.set("authorization", `Bearer ${secret}`);
    try {
      return await next(request);
    } catch (error) {
      const failure = ConnectError.from(error);
      if (failure.code === Code.Unauthenticated) onEnd(failure.rawMessage);
      throw failure;
    }
  };
  const credentials = secret === undefined ? "same-origin" : "omit";
  return createConnectTransport({
    baseUrl: location.origin,
    defaultTimeoutMs: TIMEOUT_MS,
    interceptors: [authenticate, ...interceptors],
    fetch: (input, init) => fetch(input, { ...init, cache: "no-store", credentials, redirect: "error" }),
  });
}
