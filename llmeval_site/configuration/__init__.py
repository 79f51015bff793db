"""What settings.py is made of: environment variables, and the settings of one subject in each module."""
