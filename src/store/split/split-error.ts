/** A split cannot begin or go on. The message is for the operator. */
export class SplitError extends Error {}
