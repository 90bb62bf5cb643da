"""Tools that pages offer: their names, their shares of the limits, and what is kept of them."""
