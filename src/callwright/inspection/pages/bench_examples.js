// What the reading bench and "try it" begin with.
