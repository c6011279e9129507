"""Streaming Workbench."""
