"""The objective: losses, the problem, the certificate."""
