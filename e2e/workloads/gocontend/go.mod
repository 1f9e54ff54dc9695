module example.org/gocontend

go 1.16
