"""Where do files lie? Locations as canonical URIs, small files on any storage, folders that may be away."""
