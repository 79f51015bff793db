"""Parts of settings.py: access to environment variables, and in each other module the settings of one subject."""
