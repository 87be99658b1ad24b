"""Names, numbers, times, reasons and notes that all other packages use."""
