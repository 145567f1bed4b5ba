"""From Core IR to NEM: legalise, layout, partition, tile, place, schedule, emit."""
