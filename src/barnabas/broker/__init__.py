"""The broker: settings, the table that routes requests, a handler per API, and the node that wires it all."""
