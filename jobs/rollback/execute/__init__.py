"""How is a plan carried out, resumed and undone? Intent before act, wave by wave."""
