"""The lag of consumer groups, in records and in time, on this broker and on others."""
