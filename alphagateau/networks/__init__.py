"""Networks behind one record, and the views of a Position that they see."""
