module podprof.io/e2e/gopgo

go 1.21.0
