"""The group and transaction coordinators as the handlers of a broker use them."""
