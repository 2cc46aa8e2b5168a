"""How an update is executed: the implementations behind one interface."""
