module example.org/goring

go 1.16
