"""How does one statement change several tables, all or none? It is journaled first, then one write follows another."""
