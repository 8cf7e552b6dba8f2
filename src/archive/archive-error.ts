/** A reason why entries cannot be archived, as a message for the operator. */
export class ArchiveError extends Error {}
