module podprof.io/e2e/gowork

go 1.21
