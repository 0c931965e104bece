"""Values and names: nodes, records, operations of a multi, events, errors and the JSON codec."""
