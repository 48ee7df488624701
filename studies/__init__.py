"""Questions answered with the product, a folder each. Nothing of the product imports them."""
