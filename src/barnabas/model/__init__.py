"""Values without behaviour: ids, protocol errors, the definition of a setting. Imports no other package."""
