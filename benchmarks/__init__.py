"""What is measured: everything is compared within one run, because machines and their load differ."""
