/** Exit codes of the command line, besides 0. */
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;
