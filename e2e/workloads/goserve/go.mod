module example.org/goserve

go 1.19
