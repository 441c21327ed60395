"""What a broker measures of itself, and the HTTP pages that show it."""
