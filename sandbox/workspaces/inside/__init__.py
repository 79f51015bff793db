"""The program that runs in a box as its first process. Standard library only, for any Python from 3.9 on."""
