"""Audits: a table for people, objects for machines, SARIF for code hosts, and a page that a person opens."""
