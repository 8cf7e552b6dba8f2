import { executionAsyncResource } from "node:async_hooks";

const kept: object[] = [];

/**
 * Keeps one object of `process.nextTick`, and with it V8's hidden classes of these objects. If a full garbage collection finds
 * none, the classes are removed, and from then on each property of each such object is defined by V8's runtime: a tick takes
 * seven times as long, and a call has nine of them. Call this before the first collection.
 */
export function keepTickClasses(): void {
  process.nextTick(() => kept.push(executionAsyncResource()));
}
