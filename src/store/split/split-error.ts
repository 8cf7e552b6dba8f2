/** A split cannot begin or continue. The message is for the operator. */
export class SplitError extends Error {}
