module example.org/gotruth

go 1.16
