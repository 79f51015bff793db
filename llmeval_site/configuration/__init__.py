"""Reading environment variables, and keeping the files of the product private."""
