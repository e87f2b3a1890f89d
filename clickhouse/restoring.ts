/** The table that marks a restored database as complete until it has taken the place of the old one. */
export const restoreMark = 'restored_migrations';

/** The database in which a backup is restored before it takes the place of `database`. */
export const besideOf = (database: string): string => `${database}_restoring`;
