"""Checked multis, batches and receipts; the ensemble's clock; pools and watched folders."""
