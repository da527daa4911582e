"""How do warehouse clients reach lakewarden? HiveServer2's Thrift protocol over HTTP."""
