# Written by tools/write-client-tables.ts.
__version__ = "0.1.0"
