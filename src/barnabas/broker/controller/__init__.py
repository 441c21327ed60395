"""How a broker reaches the active controller, and what it asks of it."""
