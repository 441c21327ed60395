"""Group and transaction coordinators as pure state machines, and the runtime that runs them."""
