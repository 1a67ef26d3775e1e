"""Commands of the studies, which `holdfast` finds through entry points. Help texts load nothing heavy."""
