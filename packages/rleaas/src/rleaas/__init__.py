"""rleaas."""
