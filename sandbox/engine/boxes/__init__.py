"""Boxes of workspaces: Linux machines for the commands of an agent, made of namespaces and an image's files."""
