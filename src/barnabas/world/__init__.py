"""The one door to what is not deterministic: clock, disk, entropy, workers. Tasks and network are asyncio's own."""
