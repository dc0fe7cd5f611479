"""`packaging`: programs compare versions with it."""
