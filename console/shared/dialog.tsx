import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Problem, problemOf } from "./problem.ts";
import { Notice, ProblemText } from "./states.tsx";

type DialogProps = {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** False while an action runs, or while the dialog shows what cannot be shown again. */
  readonly canClose?: boolean;
  /** For tables. */
  readonly isWide?: boolean;
};

/** A modal dialog. The browser keeps the focus in it; afterwards the element that had the focus gets it again. */
export function Dialog({ title, onClose, children, canClose = true, isWide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Chromium can also close a dialog itself, without the event "cancel".
  const onClosed = useRef(() => {});
  onClosed.current = () => (canClose ? onClose() : element.current?.showModal());
  useEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    const listener = () => onClosed.current();
    dialog?.addEventListener("close", listener);
    dialog?.showModal();
    // The browser focuses the button that closes the dialog, which comes first.
    dialog?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => {
      // A later dialog may have the same `onClose`.
      dialog?.removeEventListener("close", listener);
      dialog?.close();
      // The browser does not return the focus from a dialog that is already removed from the page.
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={id}
      // Without "none", Chromium closes a dialog at the second Escape even if the page prevented the first one.
      closedby={canClose ? "closerequest" : "none"}
      onCancel={(event) => {
        event.preventDefault();
        if (canClose) onClose();
      }}
    >
      <header class="dialog-header">
        <h2 id={id} class="wrap">
          {title}
        </h2>
        {canClose && (
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <path d="m4 4 8 8m0-8-8 8" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" />
            </svg>
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

export function ProblemNotice({ problem }: { readonly problem: Problem }) {
  return (
    <Notice tone="bad">
      <strong>{problem.title}</strong>
      <ProblemText problem={problem} />
    </Notice>
  );
}

type Action = {
  readonly isBusy: boolean;
  readonly problem: Problem | undefined;
  /** Returns whether the action succeeded. */
  readonly perform: (action: () => Promise<void>) => Promise<boolean>;
};

/** Runs one action at a time and keeps why the last one failed. */
export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, "perform">>({ isBusy: false, problem: undefined });
  const perform = async (action: () => Promise<void>) => {
    setState({ isBusy: true, problem: undefined });
    try {
      await action();
      setState({ isBusy: false, problem: undefined });
      return true;
    } catch (error) {
      setState({ isBusy: false, problem: problemOf(error) });
      return false;
    }
  };
  return { ...state, perform };
}
