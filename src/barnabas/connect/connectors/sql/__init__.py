"""SQL databases as source and sink: PostgreSQL and SQLite, with the keys of the JDBC connectors."""
