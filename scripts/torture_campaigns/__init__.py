"""The campaigns of scripts/torture: each module injects one kind of fault, case by case."""
