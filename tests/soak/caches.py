"""Build caches that are damaged, and cold ones that many processes want at once."""
