module example.org/goalloc

go 1.16
