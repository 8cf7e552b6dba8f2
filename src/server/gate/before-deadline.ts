import { DomainError } from "../../domain/errors.ts";

/** Settles like the work, or rejects when the deadline of the call passes before. */
export function beforeDeadline<T>(work: Promise<T>, remainingMs: number | undefined): Promise<T> {
  if (remainingMs === undefined) return work;
  const passed = Promise.withResolvers<never>();
  const onDeadline = () => passed.reject(deadlineExceeded());
  const timer = remainingMs > 0 ? setTimeout(onDeadline, remainingMs) : undefined;
  if (!timer) onDeadline();
  return Promise.race([work, passed.promise]).finally(() => clearTimeout(timer));
}

function deadlineExceeded(): DomainError {
  return new DomainError("deadline_exceeded", {
    message: "The deadline of the call passed before it started.",
  });
}
