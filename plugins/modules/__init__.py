"""Between plans and modules: parameters put in, packed, cut, deferred, changed."""
