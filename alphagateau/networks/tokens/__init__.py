"""The token transformer of searchless chess: tokenizer, network."""
