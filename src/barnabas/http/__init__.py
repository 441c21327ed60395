"""A small HTTP server for metrics and health checks, and the HTTP client of the package. No dependencies."""
