"""The settings of a broker, declared and typed by subject."""
