"""How we tell it: terminal, charts, HTML."""
