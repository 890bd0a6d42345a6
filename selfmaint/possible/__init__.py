"""Possible and certain rows of views with projection and of unions, by search among all databases (answer sets)."""
