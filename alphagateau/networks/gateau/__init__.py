"""GATEAU, the graph network with edge features: keys, the move graph of a Position, layers, a plain reference."""
