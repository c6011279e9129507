"""What is done to what the product has written: to values, texts, bytes, Arrow tables and folders, one change at a
time."""
