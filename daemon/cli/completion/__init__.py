"""What may come next on the command line? Answered to shells in milliseconds, without the commands' libraries."""
