/** Exit codes of the command line, besides 0. */
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;
/** The server violated an invariant of money. A restart may violate it again: see docs/operations.md. */
export const EXIT_INVARIANT = 70;
