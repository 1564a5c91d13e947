"""The token transformer of searchless chess: keys, tokenizer, network."""
