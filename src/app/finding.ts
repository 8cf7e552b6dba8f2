/** The result of one check of the doctor. `advice` says what to do. */
export type Finding = {
  readonly check: string;
  readonly status: "ok" | "warning" | "problem";
  readonly message: string;
  readonly advice?: string;
};
