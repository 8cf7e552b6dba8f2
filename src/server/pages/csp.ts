/** The Content-Security-Policy of files that are no pages, and the start of all others. */
export const NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
