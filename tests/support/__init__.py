"""What tests of every layer share: no behaviour of kinform itself lives here."""
