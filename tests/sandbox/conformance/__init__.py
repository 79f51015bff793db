"""What every backend and tier of the sandbox must withstand, as one table of attacks and honest programs."""
