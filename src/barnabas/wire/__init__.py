"""Bytes to values and back: messages compiled per version, frames, record batches, compression, Arrow."""
