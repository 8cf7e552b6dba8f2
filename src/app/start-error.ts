/** A reason why the server cannot start, as a message for the operator. */
export class StartError extends Error {}

/** The message has one line per invalid setting. */
export class ConfigError extends Error {}
