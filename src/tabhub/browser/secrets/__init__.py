"""Secret fields of pages: found, read for masking, and covered in pictures."""
