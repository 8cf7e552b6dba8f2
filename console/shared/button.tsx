import type { ButtonHTMLAttributes } from "preact";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  readonly tone?: "primary" | "plain" | "danger";
  /** The action runs: the button cannot be used again until it ends. */
  readonly isBusy?: boolean;
};

export function Button({ tone = "plain", isBusy = false, type = "button", ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      class={`button button-${tone}`}
      aria-busy={isBusy}
      disabled={isBusy || rest.disabled === true}
    />
  );
}
