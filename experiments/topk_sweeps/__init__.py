"""How top-k classification depends on temperature, p_k, m and the network."""
