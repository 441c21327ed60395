"""Commands that read files without a broker, and the debug bundle."""
