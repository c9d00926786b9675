"""QualCode and MC-QualCode: built from Project_CodeNet, and read back."""
