"""The program in an answer (`programs.code`); each module uses those before it.

syntax          whether source compiles, and which names it defines and lacks
unwrapping      removal of chat markers, tags, JSON and prompts around code
dependencies    removal of statements that only use the program's definitions
prefixes        continuation of a prefix by an answer that is only the body of its function
programs        the program of an answer, from fences, prose, JSON or as the continuation of a prefix
"""
