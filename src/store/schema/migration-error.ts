/** An error with a one-line message for the operator. */
export class MigrationError extends Error {}
