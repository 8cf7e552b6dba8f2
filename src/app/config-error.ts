/** One line per wrong setting. */
export class ConfigError extends Error {}
