"""PostgreSQL change capture: logical replication by pgoutput, in Debezium's format."""
