/** A reason why a backup cannot be created or restored, as a message for the operator. */
export class BackupError extends Error {}
