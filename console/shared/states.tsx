import type { ComponentChildren } from "preact";
import { Button } from "./button.tsx";
import { capitalized } from "./capitalized.ts";
import type { Problem } from "./problem.ts";

type EmptyStateProps = {
  readonly title: string;
  readonly children?: ComponentChildren;
};

/** The content of an empty list: what it would contain, and what to do. */
export function EmptyState({ title, children }: EmptyStateProps) {
  return (
    <div class="state">
      <p class="state-title">{title}</p>
      {children !== undefined && <div class="muted">{children}</div>}
    </div>
  );
}

type ErrorStateProps = {
  readonly problem: Problem;
  readonly onRetry?: (() => void) | undefined;
};

/** Why something cannot be shown, with the id that finds the call in the server's log. */
export function ErrorState({ problem, onRetry }: ErrorStateProps) {
  return (
    <div class="state" role="alert">
      <p class="state-title">{problem.title}</p>
      <ProblemText problem={problem} />
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

export function ProblemText({ problem }: { readonly problem: Problem }) {
  return (
    <div class="muted wrap">
      <p>{problem.message}</p>
      {problem.requestId !== "" && (
        <p class="small">
          Request id: <code>{problem.requestId}</code>
        </p>
      )}
    </div>
  );
}

type NoticeProps = {
  readonly tone: "info" | "warn" | "bad" | "good";
  readonly children: ComponentChildren;
};

/** A message that belongs to the content below it. */
export function Notice({ tone, children }: NoticeProps) {
  return (
    <div class={`notice notice-${tone}`} role={tone === "bad" ? "alert" : "note"}>
      {children}
    </div>
  );
}

type SkeletonProps = { readonly width?: string; readonly height?: string };

/** The place of a text that is being loaded. */
export function Skeleton({ width = "6rem", height = "0.75em" }: SkeletonProps) {
  return <span class="skeleton" style={{ width, height }} aria-hidden="true" />;
}

type BadgeProps = {
  readonly tone: "good" | "warn" | "bad" | "neutral";
  readonly children: ComponentChildren;
};

export function Badge({ tone, children }: BadgeProps) {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}

type StateBadgeProps = Pick<BadgeProps, "tone"> & { readonly state: string };

/** The state of an account, a key or an operator. */
export function StateBadge({ tone, state }: StateBadgeProps) {
  return <Badge tone={tone}>{capitalized(state)}</Badge>;
}
