"""The command ``barnabas``: one module per noun, imported only when its command is called."""
