"""Does it hold for a day? Informers on a server, through a bad network, for as long as you like."""
