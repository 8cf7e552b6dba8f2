import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useEffect, useState } from "preact/hooks";

const VISIBLE_MS = 5_000;

const ToastContext = createContext<(text: string) => void>(() => undefined);

/** Shows a short message that an action succeeded. */
export function useToast(): (text: string) => void {
  return useContext(ToastContext);
}

/** The place of the messages; screen readers announce them. */
export function Toasts({ children }: { readonly children: ComponentChildren }) {
  const [toast, setToast] = useState<{ readonly text: string }>();
  const show = useCallback((text: string) => setToast({ text }), []);
  useEffect(() => {
    if (toast === undefined) return;
    const timer = setTimeout(() => setToast(undefined), VISIBLE_MS);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <ToastContext.Provider value={show}>
      {children}
      <div class="toasts" role="status">
        {toast && <div class="toast wrap">{toast.text}</div>}
      </div>
    </ToastContext.Provider>
  );
}
