"""How do Python programs reach a gateway? PyHive's connection with tokens and TLS; SQLAlchemy's dialect on it,
and a magic for notebooks."""
