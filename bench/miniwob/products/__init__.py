"""The products that are compared, behind one interface."""
