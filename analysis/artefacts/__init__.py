"""What a file or folder is: `crosszero show RESULT`."""
