"""Records as people read and write them: decoding, encoding, formats, filters, positions."""
