import { useCallback, useEffect, useState } from "preact/hooks";
import { isCancelled, type Problem, problemOf } from "./problem.ts";

export type Query<Data> = {
  /** Also set while newer data is being loaded. */
  readonly data: Data | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
};

type State<Data> = Omit<Query<Data>, "reload">;

const RELOAD = new EventTarget();

/** Loads everything again that could not be loaded: the server can be reached again. */
export function reloadFailed(): void {
  RELOAD.dispatchEvent(new Event("reload"));
}

/** Loads data, again whenever one of the inputs changes. A newer load cancels an older one. */
export function useQuery<Data>(load: (signal: AbortSignal) => Promise<Data>, inputs: readonly unknown[]): Query<Data> {
  const [state, setState] = useState<State<Data>>({ data: undefined, problem: undefined, isLoading: true });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState(({ data }) => ({ data, problem: undefined, isLoading: true }));
    load(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, problem: undefined, isLoading: false });
      },
      (error: unknown) => {
        if (controller.signal.aborted || isCancelled(error)) return;
        setState(({ data }) => ({ data, problem: problemOf(error), isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [...inputs, attempt]);
  const reload = useCallback(() => setAttempt((number) => number + 1), []);
  const hasFailed = state.problem !== undefined;
  useEffect(() => {
    if (!hasFailed) return;
    RELOAD.addEventListener("reload", reload);
    return () => RELOAD.removeEventListener("reload", reload);
  }, [hasFailed]);
  return { ...state, reload };
}
