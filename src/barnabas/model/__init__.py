"""The nouns of the field, with no behaviour beyond themselves: ids, errors, settings. Imports nothing of ours."""
