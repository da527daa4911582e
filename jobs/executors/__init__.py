"""How is each action done? One module per action; engines stand behind a port."""
