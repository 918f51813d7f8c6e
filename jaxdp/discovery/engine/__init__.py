"""What searches share: the skeleton loop, counting, orientation, one charge for a whole search."""
