"""How views follow that the decision does not decide: from other views, their own rows, by keys, or anew."""
