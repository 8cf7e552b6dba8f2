import { Code, ConnectError } from "@connectrpc/connect";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { WatchOverviewResponse } from "../../gen/vx/admin/v1/console_pb.js";
import { Button } from "../shared/button.tsx";
import { delay } from "../shared/use-live.ts";
import { reloadFailed } from "../shared/use-query.ts";
import { type OperatorSession, useSession } from "./operator-session.ts";

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;

/** The figures of the running service. */
type LiveFigures = {
  /** Undefined until they arrive. */
  readonly latest: WatchOverviewResponse | undefined;
  /** When the next attempt to connect starts, in milliseconds since 1970; undefined while figures arrive. */
  readonly retryAt: number | undefined;
};

const NONE: LiveFigures = { latest: undefined, retryAt: undefined };

const LiveContext = createContext<LiveFigures>(NONE);

export function useLiveFigures(): LiveFigures {
  return useContext(LiveContext);
}

/** Keeps one stream of figures open, and says when the connection is lost. */
export function LiveProvider({ children }: { readonly children: ComponentChildren }) {
  const session = useSession();
  const [live, setLive] = useState(NONE);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    void watch(session, controller.signal, setLive);
    return () => controller.abort();
  }, [session, attempt]);
  return (
    <LiveContext.Provider value={live}>
      {live.retryAt !== undefined && <Banner retryAt={live.retryAt} onRetry={() => setAttempt((number) => number + 1)} />}
      {children}
    </LiveContext.Provider>
  );
}

/** Connects again whenever the stream ends, and waits longer each time. */
async function watch(
  { live }: OperatorSession,
  signal: AbortSignal,
  set: (change: (before: LiveFigures) => LiveFigures) => void,
): Promise<void> {
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      for await (const message of live.watchOverview({}, { signal, timeoutMs: 0 })) {
        if (waitMs > FIRST_WAIT_MS) reloadFailed();
        waitMs = FIRST_WAIT_MS;
        set(() => ({ latest: message, retryAt: undefined }));
      }
    } catch (error) {
      if (signal.aborted) return;
      // The session shows the sign-in.
      if (ConnectError.from(error).code === Code.Unauthenticated) return;
    }
    const retryAt = Date.now() + waitMs;
    set(({ latest }) => ({ latest, retryAt }));
    await delay(waitMs, signal);
    waitMs = Math.min(waitMs * 2, MAX_WAIT_MS);
  }
}

type BannerProps = { readonly retryAt: number; readonly onRetry: () => void };

function Banner({ retryAt, onRetry }: BannerProps) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((retryAt - now) / 1_000));
  return (
    <div class="banner">
      <span role="alert">The connection to the server is lost. What you see may be out of date.</span>
      <span class="banner-wait">{seconds > 0 ? `Next attempt in ${seconds} s` : "Connecting …"}</span>
      <Button onClick={onRetry}>Try now</Button>
    </div>
  );
}
