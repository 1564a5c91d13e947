"""The board in the browser: server, requests, games and views."""
