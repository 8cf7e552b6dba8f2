/** The message has one line per invalid setting. */
export class ConfigError extends Error {}
