"""GATEAU, the graph network with edge features: the move graph of a Position, layers, a plain reference."""
